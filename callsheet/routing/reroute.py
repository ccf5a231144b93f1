"""Jobs that wait in queues that no live GPU could serve, and where they go instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from callsheet.records.gpus import Gpu
from callsheet.routing.classes import KNOWN, smallest_first
from callsheet.routing.estimates import LaneSpec
from callsheet.routing.placement import fits
from callsheet.routing.queues import QueueName, parse_queue
from callsheet.routing.targets import runs


def stranded(backlog: Iterable[str], gpus: Iterable[Gpu], lanes: Mapping[str, LaneSpec]) -> list[str]:
    """Queues of the backlog whose jobs no live GPU runs, whatever weights it has, in their order."""
    live = tuple(gpus)
    return [queue for queue in backlog if not _served(parse_queue(queue), live, lanes)]


def new_home(
    need_gib: float, *, tier: str, lane: str, gpus: Iterable[Gpu], lanes: Mapping[str, LaneSpec]
) -> QueueName | None:
    """Where a stranded job goes: a queue of its tier and lane whose class fits and that a live GPU serves.

    Classes of GPUs that are there come first, the smallest first. None: nobody can run it now, so it stays
    where it is and waits.
    """
    live = tuple(gpus)
    present = {gpu.gpu_class for gpu in live}
    fitting = [known.name for known in smallest_first(KNOWN) if fits(need_gib, known)]
    for gpu_class in sorted(fitting, key=lambda name: name not in present):
        home = QueueName(tier, gpu_class, lane)
        if _served(home, live, lanes):
            return home
    return None


def _served(queue: QueueName, gpus: Iterable[Gpu], lanes: Mapping[str, LaneSpec]) -> bool:
    return any(runs(lanes.get(queue.lane), gpu, queue.gpu_class) for gpu in gpus)
