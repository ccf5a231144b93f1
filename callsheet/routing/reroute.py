"""Jobs that wait in queues that nobody serves, and where they go instead."""

from __future__ import annotations

from collections.abc import Iterable

from callsheet.errors import BadQueueName
from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Job
from callsheet.routing.classes import smallest_first
from callsheet.routing.placement import fits
from callsheet.routing.queues import QueueName, parse_queue


def stranded(backlog: Iterable[str], gpus: Iterable[Gpu]) -> list[str]:
    """Queues of the backlog to which no live worker subscribes, in their order."""
    served = _served(gpus)
    return [queue for queue in backlog if queue not in served]


def new_home(need_gib: float, *, tier: str, lane: str = "", gpus: Iterable[Gpu]) -> QueueName | None:
    """Where a stranded job goes: a queue of its tier and lane that somebody serves and whose class fits.

    Classes of GPUs that are there come first, the smallest first. None: nobody can run it now, so it stays
    where it is and waits.
    """
    live = tuple(gpus)
    served = _classes(_served(live), tier, lane)
    for candidates in (served.intersection(gpu.gpu_class for gpu in live), served):
        for gpu_class in smallest_first(candidates):
            if fits(need_gib, gpu_class):
                return QueueName(tier, gpu_class.name, lane)
    return None


def _served(gpus: Iterable[Gpu]) -> frozenset[str]:
    return frozenset(queue for gpu in gpus for queue in gpu.queues)


def _classes(queues: Iterable[str], tier: str, lane: str) -> frozenset[str]:
    """Classes of those queues that belong to one tier and lane; other queues are no concern."""
    found = set()
    for queue in queues:
        try:
            name = parse_queue(queue)
        except BadQueueName:
            continue
        if (name.tier, name.lane) == (tier, lane):
            found.add(name.gpu_class)
    return frozenset(found)


def reroutes(jobs: Iterable[Job], gpus: Iterable[Gpu]) -> dict[str, tuple[str, str]]:
    """Moves for jobs of stranded queues: job id -> (GPU class, queue). Waiting jobs are left out."""
    live = tuple(gpus)
    moves = {}
    for job in jobs:
        old = parse_queue(job.queue)
        home = new_home(job.need_gib, tier=old.tier, lane=old.lane, gpus=live)
        if home is not None and home != old:
            moves[job.id] = (home.gpu_class, str(home))
    return moves
