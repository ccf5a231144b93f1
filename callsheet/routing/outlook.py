"""What a waiting job has to expect: the classes that fit it, the GPUs of its lane, when it may start."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from callsheet.records.jobs import Job
from callsheet.routing.benches import may_yield
from callsheet.routing.classes import KNOWN
from callsheet.routing.estimates import LaneSpec
from callsheet.routing.queues import lane_of
from callsheet.routing.seats import Seat
from callsheet.routing.targets import able, runs
from callsheet.routing.tiers import TierRule

ONE_BY_ONE = 2000  # jobs before it that are reckoned one by one; more of them flow like water


@dataclass(frozen=True, slots=True)
class Fit:
    """One GPU class, for one job."""

    gpu_class: str
    gpus: int  # alive, and taking jobs
    warm: int  # of them, those with its weights
    lacks: str  # what keeps it from running the job; "" = it fits


@dataclass(frozen=True, slots=True)
class Outlook:
    """An estimate."""

    wait_s: float | None  # from now; None = nothing can be said
    reason: str  # what it was made from, or why there is none


def fits(job: Job, seats: Sequence[Seat], spec: LaneSpec | None) -> list[Fit]:
    """The classes of the fleet, and the one that the job was placed on."""
    lane = lane_of(job.queue)
    found = []
    for gpu_class in sorted({seat.gpu.gpu_class for seat in seats} | {job.gpu_class}):
        own = [seat for seat in seats if seat.gpu.gpu_class == gpu_class]
        warm = sum(lane in seat.warm for seat in own)
        found.append(Fit(gpu_class, len(own), warm, _lacks(job, gpu_class, spec)))
    return found


def _lacks(job: Job, gpu_class: str, spec: LaneSpec | None) -> str:
    known = KNOWN.get(gpu_class)
    if known is not None and job.need_gib > known.usable_gib:
        return f"memory: the job needs {job.need_gib:.1f} GiB, {known.usable_gib:g} are usable"
    if able(spec, gpu_class, job.gpu_class):
        return ""
    if spec is None:
        return f"nothing is known of lane {lane_of(job.queue) or '(shared)'} here"
    if spec.speed.get(gpu_class, 0.0) <= 0:
        return "its model does not run on this class"
    return f"less than class {job.gpu_class}, which the job was placed on"


def servers(job: Job, seats: Iterable[Seat], spec: LaneSpec | None) -> list[Seat]:
    """GPUs that have its weights or load them, and can run it; the soonest free first."""
    lane = lane_of(job.queue)
    able_to = [
        seat
        for seat in seats
        if (lane in seat.warm or seat.loading == lane) and runs(spec, seat.gpu, job.gpu_class)
    ]
    return sorted(able_to, key=lambda seat: (not seat.idle, seat.frees_s, seat.gpu.name))


def outlook(
    job: Job,
    seats: Sequence[Seat],
    spec: LaneSpec | None,
    tiers: Mapping[str, TierRule],
    *,
    jobs: int,
    work_s: float,
) -> Outlook:
    """When a waiting job may start. ``jobs``, ``work_s``: what of its lane stands before it.

    From the expected ends of the GPUs that have its weights, and of idle ones that could load them; without
    any, of all that could. A tier that preempts also counts on GPUs whose job may yield. What other lanes
    want of these GPUs, and what is still to come, is left out.
    """
    lane = lane_of(job.queue)
    able_to = [seat for seat in seats if runs(spec, seat.gpu, job.gpu_class)]
    if spec is None or not able_to:
        return Outlook(None, "no GPU that takes jobs can run it")
    rule = tiers.get(job.tier, TierRule(job.tier))
    warm = [seat for seat in able_to if lane in seat.warm or seat.loading == lane]
    cold = [seat for seat in able_to if seat not in warm and (seat.idle or not warm)]
    starts = [(_free_in(seat, rule, tiers), spec.speed[seat.gpu.gpu_class]) for seat in warm]
    starts += [(_free_in(seat, rule, tiers) + spec.load_s, spec.speed[seat.gpu.gpu_class]) for seat in cold]
    told = [f"{len(warm)} with its weights"] if warm else []
    told += [f"{len(cold)} that could load them in {spec.load_s:.0f} s"] if cold else []
    begun = f"from when GPUs are free ({', '.join(told)})"
    return Outlook(_served(starts, jobs, work_s), f"{begun} and {work_s:.0f} s of work before it")


def _free_in(seat: Seat, rule: TierRule, tiers: Mapping[str, TierRule]) -> float:
    return seat.yields_s if rule.preempts and may_yield(seat, tiers) else seat.frees_s


def _served(starts: Sequence[tuple[float, float]], jobs: int, work_s: float) -> float:
    """When the first GPU is free again after so many jobs of equal work. ``starts``: (free in s, speed)."""
    if jobs > ONE_BY_ONE:
        speed = sum(per_s for _, per_s in starts)
        return sum(free_s * per_s for free_s, per_s in starts) / speed + work_s / speed
    heap = list(starts)
    heapq.heapify(heap)
    for _ in range(jobs):
        free_s, speed = heap[0]
        heapq.heapreplace(heap, (free_s + work_s / jobs / speed, speed))
    return heap[0][0]
