"""The encoded prompt: recorded when the pipeline encodes it, answered from the checkpoint at a resume."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from callsheet.workers.replay.codec import Node, UnknownType, keep_in, pack, unpack
from callsheet.workers.replay.patches import patched


class Prompts:
    """Stands in for ``encode_prompt`` of one run, whose calls come in the same order in every run."""

    def __init__(self, nodes: list[Node], tensors: Mapping[str, torch.Tensor], device: torch.device) -> None:
        self.nodes = list(nodes)  # of each call's answer, as far as they can be written down
        names = [name for name in tensors if name.startswith("prompt.")]
        self.tensors = {name: tensors[name] for name in names}  # copies on the CPU
        self._device = device
        self._calls = 0

    @contextmanager
    def over(self, pipe: Any) -> Iterator[None]:
        """Watch a pipeline that has ``encode_prompt``; leave another alone."""
        real = getattr(pipe, "encode_prompt", None)
        if real is None:
            yield
            return

        @functools.wraps(real)
        def encode_prompt(*args: Any, **kwargs: Any) -> Any:
            return self._answer(real, args, kwargs)

        with patched(pipe, "encode_prompt", encode_prompt):
            yield

    def _answer(self, real: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        call, self._calls = self._calls, self._calls + 1
        if call < len(self.nodes):
            return unpack(self.nodes[call], self.tensors, self._device)
        encoded = real(*args, **kwargs)
        if call == len(self.nodes):
            self._record(encoded, call)
        return encoded

    def _record(self, encoded: Any, call: int) -> None:
        """What cannot be written down is encoded again at a resume, and so is all that follows."""
        copies: dict[str, torch.Tensor] = {}
        try:
            self.nodes.append(pack(encoded, f"prompt.{call}", keep_in(copies)))
        except UnknownType:
            return
        self.tensors |= copies
