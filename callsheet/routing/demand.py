"""How much work comes and waits, per lane: what the targets are made for."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from callsheet.records.lanes import Waiting
from callsheet.routing.queues import parse_queue
from callsheet.routing.seats import Seat
from callsheet.routing.tiers import TierRule

RATE_S = 120.0  # over which arrivals are averaged
URGENT_S = 15.0  # in which the backlog of a tier that preempts shall be served
OLDEST_S = 60.0  # of the fleet's capacity: so much of the oldest waiting work says what is wanted
SPREAD_S = 30.0  # in which a short backlog of a tier that waits shall be served
PEAK_S = 60.0  # one entry of the peaks
PEAKS = 10  # entries that count


@dataclass(frozen=True, slots=True)
class Demand:
    """Work that one tier wants from one lane, on GPUs of at least one class."""

    tier: str
    lane: str
    need: str  # GPU class
    per_s: float  # seconds on the reference GPU, per second


def rates(
    offered: Mapping[str, float],
    before: Mapping[str, float],
    rates_before: Mapping[str, float],
    past_s: float,
    seen_s: float,
) -> dict[str, float]:
    """Moving averages of work per second by queue. ``past_s``: seconds since ``before``, 0 = never seen.

    ``seen_s``: seconds since the first look. While they are few the average is over them alone: a fleet that
    has just started is not to believe for minutes that little comes.
    """
    if past_s <= 0:
        return dict(rates_before)
    weight = (1.0 - math.exp(-past_s / RATE_S)) / (1.0 - math.exp(-max(seen_s, past_s) / RATE_S))
    return {
        queue: (1 - weight) * rates_before.get(queue, 0.0)
        + weight * max(total - before.get(queue, 0.0), 0.0) / past_s
        for queue, total in offered.items()
    }


def demands(
    waiting: Sequence[Waiting], averages: Mapping[str, float], tiers: Iterable[TierRule], capacity: float
) -> list[Demand]:
    """What every tier wants from every lane. ``capacity``: reference seconds per second of the fleet."""
    found = []
    for tier in tiers:
        own = [one for one in waiting if parse_queue(one.queue).tier == tier.name]
        wanted = _urgent(own, averages) if tier.preempts else _patient(own, averages, capacity)
        for queue, per_s in wanted.items():
            if per_s > 0:
                name = parse_queue(queue)
                found.append(Demand(tier.name, name.lane, name.gpu_class, per_s))
    return found


def _urgent(waiting: Iterable[Waiting], averages: Mapping[str, float]) -> dict[str, float]:
    return {one.queue: averages.get(one.queue, 0.0) + one.work_s / URGENT_S for one in waiting}


def _patient(waiting: Sequence[Waiting], averages: Mapping[str, float], capacity: float) -> dict[str, float]:
    """The mix of the oldest work when much waits; else what comes, and what waits spread over half a minute.

    Of long backlogs only the front is seen: behind the first of these ends nothing is known of the mix.
    """
    if sum(one.work_s for one in waiting) <= SPREAD_S * capacity:
        return {one.queue: averages.get(one.queue, 0.0) + one.work_s / SPREAD_S for one in waiting}
    mix: defaultdict[str, float] = defaultdict(float)
    seen = min(
        (one.heads[-1].key for one in waiting if one.heads and one.jobs > len(one.heads)), default=math.inf
    )
    heads = sorted((head.key, head.work_s, one.queue) for one in waiting for head in one.heads)
    total = 0.0
    for key, work_s, queue in heads:
        if total >= OLDEST_S * capacity or key > seen:
            break
        mix[queue] += work_s
        total += work_s
    return {queue: work_s / total * capacity for queue, work_s in mix.items()} if total else {}


def busy_with(seats: Iterable[Seat], waiting: Iterable[Waiting], tier: str) -> Counter[str]:
    """GPUs that jobs of a tier use or want, per lane."""
    count: Counter[str] = Counter()
    for seat in seats:
        if seat.job is not None and seat.job.tier == tier:
            count[seat.lane] += 1
    for one in waiting:
        name = parse_queue(one.queue)
        if name.tier == tier and one.jobs:
            count[name.lane] += one.jobs
    return count


def peaks(
    now: float, before: Mapping[str, Sequence[tuple[float, float]]], busy: Mapping[str, int]
) -> dict[str, list[tuple[float, float]]]:
    """Largest numbers of the last ten minutes, by the minute: lane -> (since, GPUs)."""
    minute = now - now % PEAK_S
    kept = {}
    for lane in {*before, *busy}:
        rows = [(at, n) for at, n in before.get(lane, ()) if minute - PEAKS * PEAK_S < at < minute]
        last = max((n for at, n in before.get(lane, ()) if at == minute), default=0.0)
        kept[lane] = [*rows, (minute, max(last, float(busy.get(lane, 0))))]
    return kept


def cover(rows: Mapping[str, Sequence[tuple[float, float]]]) -> dict[str, float]:
    """GPUs that each lane needed at most in the time that :func:`peaks` kept."""
    return {lane: max((n for _, n in of), default=0.0) for lane, of in rows.items()}
