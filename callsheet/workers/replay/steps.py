"""What the scheduler's steps of one iteration returned: recorded in one run, given again in another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from callsheet.workers.replay.codec import Node, UnknownType, keep_in, pack, unpack
from callsheet.workers.replay.refusals import NotReplayable


class Record:
    """Step results of the running and of the last finished iteration.

    Results are copied at once, where they are, since pipelines may write into them.
    """

    def __init__(self, nodes: list[Node], tensors: Mapping[str, torch.Tensor]) -> None:
        self.fault = ""  # why the steps cannot be replayed
        self.pattern: list[int] = [node["scheduler"] for node in nodes]  # instances that step, one iteration
        self._last = (nodes, {name: t for name, t in tensors.items() if name.startswith("step.")})
        self._nodes: list[Node] = []
        self._tensors: dict[str, torch.Tensor] = {}
        self._replayed: list[int] = []

    @property
    def begun(self) -> bool:
        """Whether the running iteration has stepped."""
        return bool(self._nodes or self._replayed)

    def add(self, scheduler: int, result: Any) -> None:
        """A step of the running iteration returned ``result``."""
        at = len(self._nodes)
        try:
            node = pack(result, f"step.{at}", keep_in(self._tensors, None))
        except UnknownType as error:
            self.fault = self.fault or f"what the scheduler's step returns cannot be written down: {error}"
            node = {}
        self._nodes.append({"scheduler": scheduler, "result": node})

    def end(self) -> None:
        """The running iteration is finished."""
        pattern = [node["scheduler"] for node in self._nodes]
        if not pattern:
            self.fault = self.fault or "an iteration ended without a step of its scheduler"
        elif self.pattern and pattern != self.pattern:
            self.fault = self.fault or (
                "the scheduler steps change from iteration to iteration: "
                f"{len(self.pattern)} of {len(set(self.pattern))} schedulers, then "
                f"{len(pattern)} of {len(set(pattern))}"
            )
        self.pattern = pattern
        self._last, self._nodes, self._tensors = (self._nodes, self._tensors), [], {}

    def replay(self, scheduler: int, device: torch.device) -> Any:
        """What the next step of this iteration shall return. Raises NotReplayable when none was recorded."""
        nodes, tensors = self._last
        self._replayed.append(scheduler)
        at = len(self._replayed) - 1
        if at >= len(nodes) or nodes[at]["scheduler"] != scheduler:
            raise self._other_steps()
        return unpack(nodes[at]["result"], tensors, device)

    def end_replayed(self) -> None:
        """A replayed iteration is finished. Raises NotReplayable when steps are missing."""
        if self._replayed != self.pattern:
            raise self._other_steps()
        self._replayed = []

    def pack(self, tensors: dict[str, torch.Tensor]) -> list[Node]:
        """The last finished iteration; copies of its tensors go to ``tensors``."""
        nodes, kept = self._last
        for name, tensor in kept.items():
            tensors[name] = tensor.to("cpu", copy=True)
        return nodes

    def _other_steps(self) -> NotReplayable:
        return NotReplayable(
            f"this run's scheduler steps {self._replayed} differ from the checkpoint's {self.pattern}; "
            "the job starts again at step 0."
        )
