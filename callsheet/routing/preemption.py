"""Which running jobs give their GPU to which waiting ones.

The first, simple rule: a waiting job of a tier that preempts takes an idle GPU that serves its queue; when
there is none, the cheapest preemptible job on such a GPU yields. Cheapest means: was preempted least often,
holds the cheapest kind of GPU, has the most steps still to go. A job that is about to end is left alone,
since waiting for it is cheaper than a save and a load.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Job
from callsheet.records.requests import PREEMPTIBLE, PREEMPTING
from callsheet.routing.classes import KNOWN

NEAR_END = ("decode", "store")  # phases after the last step


@dataclass(frozen=True, slots=True)
class Seat:
    """A GPU that takes jobs, and what it does."""

    gpu: Gpu
    job: Job | None = None  # what runs there
    promised: bool = False  # a ticket in its direct queue: its next job is chosen


@dataclass(frozen=True, slots=True)
class Preemption:
    """One decision: the victim yields, and the heir gets its GPU."""

    victim: Job
    heir: Job
    gpu: Gpu

    @property
    def reason(self) -> str:
        """Why, in words."""
        return f"{self.heir.tier} job {self.heir.id} waits and no GPU that serves {self.heir.queue} is idle"


def preemptions(waiting: Iterable[Job], seats: Sequence[Seat]) -> list[Preemption]:
    """Decide for the waiting jobs, those that came first coming first. Each seat is given away once."""
    left = {seat.gpu.name: seat for seat in seats if not seat.promised}
    decided = []
    for heir in sorted(filter(_preempts, waiting), key=lambda job: job.created_at):
        able = [seat for seat in left.values() if heir.queue in seat.gpu.queues]
        free = next((seat for seat in able if _gets_free(seat)), None)
        seat = free or min(filter(_may_yield, able), key=_cost, default=None)
        if seat is None:
            continue
        del left[seat.gpu.name]
        if seat is not free and seat.job is not None:
            decided.append(Preemption(seat.job, heir, seat.gpu))
    return decided


def _preempts(job: Job) -> bool:
    return job.tier in PREEMPTING


def _gets_free(seat: Seat) -> bool:
    """Idle, or told to yield already."""
    return seat.job is None or bool(seat.job.order)


def _may_yield(seat: Seat) -> bool:
    job = seat.job
    if job is None or job.tier not in PREEMPTIBLE or job.phase in NEAR_END:
        return False
    return job.step < (job.steps or job.request.steps) - 1  # not in its last step


def _cost(seat: Seat) -> tuple[int, float, int, str]:
    job, known = seat.job, KNOWN.get(seat.gpu.gpu_class)
    assert job is not None
    to_go = (job.steps or job.request.steps) - job.step
    return job.preemptions, known.price if known else 0.0, -to_go, seat.gpu.name
