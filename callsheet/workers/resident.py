"""Pipelines that stay loaded between jobs."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from callsheet.workers.memory import free_memory
from callsheet.workers.pipelines import LoadedPipeline


@dataclass(frozen=True, slots=True)
class _Resident:
    pipeline: LoadedPipeline
    weights_gib: float


class ResidentModels:
    """Loaded pipelines by model name: up to ``limit``, and no more weights than ``vram_gib`` hold.

    ``keep`` answers names in the order in which they are worth keeping: what it does not name goes first,
    then what it names last; among equals the one that was not used for longest. Not thread-safe: one worker
    child runs one job at a time.
    """

    def __init__(
        self, limit: int, vram_gib: float = math.inf, keep: Callable[[], Sequence[str]] = tuple
    ) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        self._limit, self._vram_gib, self._keep = limit, vram_gib, keep
        self._loaded: OrderedDict[str, _Resident] = OrderedDict()  # least recently used first

    @property
    def names(self) -> tuple[str, ...]:
        """Models whose weights are loaded, least recently used first."""
        return tuple(self._loaded)

    def get(
        self,
        name: str,
        load: Callable[[], LoadedPipeline],
        *,
        weights_gib: float = 0.0,
        need_gib: float = 0.0,
    ) -> LoadedPipeline:
        """The loaded pipeline; ``load`` is called when it is not there, after room was made for it.

        ``need_gib``: what the job needs, its weights (``weights_gib``) included. What ``load`` raises is
        passed on; then the model is not resident and the evicted ones are gone.
        """
        self._make_room(name, max(need_gib, weights_gib))
        if name not in self._loaded:
            self._loaded[name] = _Resident(load(), weights_gib)
        self._loaded.move_to_end(name)
        return self._loaded[name].pipeline

    def drop(self, name: str) -> None:
        """Forget one model, if it is there; its memory comes back once no caller refers to it."""
        if self._loaded.pop(name, None) is not None:
            free_memory()

    def clear(self) -> None:
        """Forget all."""
        self._loaded.clear()
        free_memory()

    def _make_room(self, name: str, need_gib: float) -> None:
        """Evict before loading: two sets of weights need not fit at once."""
        if not self._crowded(name, need_gib):
            return
        for other in self._leaving(name):
            del self._loaded[other]
            if not self._crowded(name, need_gib):
                break
        free_memory()

    def _crowded(self, name: str, need_gib: float) -> bool:
        others = [one.weights_gib for other, one in self._loaded.items() if other != name]
        return len(others) >= self._limit or (bool(others) and sum(others) + need_gib > self._vram_gib)

    def _leaving(self, name: str) -> list[str]:
        """The others, what goes first first."""
        rank = {kept: place for place, kept in enumerate(self._keep())}
        others = [other for other in self._loaded if other != name]
        return sorted(others, key=lambda other: -rank.get(other, len(rank)))
