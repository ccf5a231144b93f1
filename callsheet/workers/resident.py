"""Pipelines that stay loaded between jobs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from callsheet.workers.memory import free_memory
from callsheet.workers.pipelines import LoadedPipeline


class ResidentModels:
    """Up to ``limit`` loaded pipelines by model name; the one that was not used for longest goes first.

    Not thread-safe: one worker child runs one job at a time.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        self._limit = limit
        self._loaded: OrderedDict[str, LoadedPipeline] = OrderedDict()  # least recently used first

    @property
    def names(self) -> tuple[str, ...]:
        """Models whose weights are loaded, least recently used first."""
        return tuple(self._loaded)

    def get(self, name: str, load: Callable[[], LoadedPipeline]) -> LoadedPipeline:
        """The loaded pipeline; ``load`` is called when it is not there, after room was made for it.

        What ``load`` raises is passed on; then the model is not resident and the evicted ones are gone.
        """
        if name not in self._loaded:
            self._make_room()
            self._loaded[name] = load()
        self._loaded.move_to_end(name)
        return self._loaded[name]

    def drop(self, name: str) -> None:
        """Forget one model, if it is there; its memory comes back once no caller refers to it."""
        if self._loaded.pop(name, None) is not None:
            free_memory()

    def clear(self) -> None:
        """Forget all."""
        self._loaded.clear()
        free_memory()

    def _make_room(self) -> None:
        """Evict before loading: two sets of weights need not fit at once."""
        evicted = False
        while len(self._loaded) >= self._limit:
            self._loaded.popitem(last=False)
            evicted = True
        if evicted:
            free_memory()
