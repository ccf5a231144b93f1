"""How many GPUs of each class are wanted: for what comes, what waits, and what each tier is promised.

    work wanted = rate of arrivals + backlog / horizon          seconds on the reference GPU, per second

by tier, lane and class that its jobs need; no waiting job keeps more than one GPU at work. A tier's backlog
shall be served within the horizon: short for a tier that preempts, a part of the longest wait for others.
While other tiers take what they are guaranteed, a tier gets by with the rest: where that is too little, more
is wanted. The work goes first to the classes that are there, those first that cost least for it, and what is
left to the one that costs least of all. No GPU is at work all the time, hence ``BUSY``.

More is wanted at once; fewer only when ten minutes were watched in which no more were needed, so that a
number does not follow each gust of arrivals. An autoscaler is to read ``Memory.wanted`` (what ``callsheet
rebalance --dry-run`` shows as GPUs wanted), add GPUs up to it, and drain those beyond it. Nothing here does
that yet.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from callsheet.records.lanes import Waiting
from callsheet.routing.classes import price_of
from callsheet.routing.demand import cover, peaks
from callsheet.routing.estimates import LaneSpec
from callsheet.routing.queues import parse_queue
from callsheet.routing.seats import Seat
from callsheet.routing.targets import able
from callsheet.routing.tiers import TierRule

BUSY = 0.9  # of its time that a GPU is at work at most
URGENT_S = 60.0  # horizon of a tier that preempts: a GPU that is added takes about as long to come
HORIZON_S = 300.0  # of the others, at most
PART = 0.25  # of the longest wait: their horizon, if that is shorter
OTHERS = 0.95  # of the GPUs that other tiers may be guaranteed at most; the rest is always one's own
EXACT = 1e-6  # below, a part of a GPU is an error of rounding

Pair = tuple[str, str]  # lane, class that its jobs need


@dataclass(frozen=True, slots=True)
class Scale:
    """What is wanted, and what must be remembered of it."""

    wanted: Mapping[str, tuple[int, str]]  # class -> (GPUs, why)
    needed: Mapping[str, Sequence[tuple[float, float]]]  # class -> (minute, GPUs at most)


def scale(
    now: float,
    waiting: Iterable[Waiting],
    averages: Mapping[str, float],
    seats: Iterable[Seat],
    lanes: Mapping[str, LaneSpec],
    tiers: Sequence[TierRule],
    before: Mapping[str, Sequence[tuple[float, float]]],
) -> Scale:
    """GPUs wanted per class. ``averages``: queue -> work per second; ``before``: ``needed`` of last time."""
    have = Counter(seat.gpu.gpu_class for seat in seats)
    exact = gpus_for(work_wanted(list(waiting), averages, have, lanes, tiers), have, lanes)
    due = {c: math.ceil(exact.get(c, 0.0) / BUSY - EXACT) for c in {*have, *exact}}
    seen = {c: due[c] if c in before else max(due[c], have[c]) for c in due}  # a new class is watched first
    needed = {c: rows for c, rows in peaks(now, before, seen).items() if c in due or any_of(rows)}
    most = {c: int(gpus) for c, gpus in sorted(cover(needed).items())}
    return Scale({c: (gpus, _why(gpus, due.get(c, 0), have[c])) for c, gpus in most.items()}, needed)


def any_of(rows: Iterable[tuple[float, float]]) -> bool:
    """Whether a GPU was needed in any of these minutes."""
    return any(gpus > 0 for _, gpus in rows)


def work_wanted(
    waiting: Sequence[Waiting],
    averages: Mapping[str, float],
    have: Mapping[str, int],
    lanes: Mapping[str, LaneSpec],
    tiers: Sequence[TierRule],
) -> dict[Pair, float]:
    """Work per second by lane and need, seconds on the reference GPU."""
    rules = {rule.name: rule for rule in tiers}
    due: defaultdict[Pair, dict[str, float]] = defaultdict(dict)  # by tier, in time
    most: defaultdict[Pair, dict[str, float]] = defaultdict(dict)  # by tier, all its jobs at work at once
    for one in waiting:
        name, rate = parse_queue(one.queue), averages.get(one.queue, 0.0)
        rule, pair = rules.get(name.tier), (name.lane, name.gpu_class)
        at_once = one.jobs * _fastest(pair, have, lanes)
        if rule is not None and rate + at_once > 0:
            due[pair][rule.name] = rate + min(one.work_s / horizon_s(rule), at_once)
            most[pair][rule.name] = rate + at_once
    shares = {name: rules[name].share for row in due.values() for name in row}
    return {pair: _shared(row, most[pair], shares) for pair, row in due.items()}


def _shared(due: Mapping[str, float], most: Mapping[str, float], shares: Mapping[str, float]) -> float:
    """Work wanted for all tiers, so that each gets by while the others take what they are guaranteed."""
    wanted = sum(due.values())
    for tier, own in due.items():
        others = min(sum(share for name, share in shares.items() if name != tier), OTHERS)
        taken = sum(work for name, work in most.items() if name != tier)
        wanted = max(wanted, min(own / (1.0 - others), own + taken))
    return wanted


def _fastest(pair: Pair, have: Mapping[str, int], lanes: Mapping[str, LaneSpec]) -> float:
    """Work per second of the fastest class that can do it: of those that are there, if any can."""
    able_to = _cheapest_first(pair, lanes)
    present = [gpu_class for gpu_class in able_to if gpu_class in have]
    return max((lanes[pair[0]].speed[gpu_class] for gpu_class in present or able_to), default=0.0)


def horizon_s(rule: TierRule) -> float:
    """In which a tier's backlog shall be served."""
    if rule.preempts:
        return URGENT_S
    return min(HORIZON_S, PART * rule.longest_wait_s) if rule.longest_wait_s else HORIZON_S


def gpus_for(
    work: Mapping[Pair, float], have: Mapping[str, int], lanes: Mapping[str, LaneSpec]
) -> dict[str, float]:
    """GPUs that do so much work at all times, by class.

    Work that few classes can do chooses first. More work never makes it fewer GPUs of any class.
    """
    room = {gpu_class: float(count) * BUSY for gpu_class, count in have.items()}
    used: defaultdict[str, float] = defaultdict(float)
    able_to = {pair: _cheapest_first(pair, lanes) for pair in work}
    for pair in sorted(work, key=lambda of: (len(able_to[of]), of)):
        speed, left = lanes[pair[0]].speed if pair[0] in lanes else {}, work[pair]
        present = [gpu_class for gpu_class in able_to[pair] if gpu_class in have]
        for gpu_class in present:
            taken = min(room[gpu_class], left / speed[gpu_class])
            room[gpu_class] -= taken
            used[gpu_class] += taken
            left = max(left - taken * speed[gpu_class], 0.0)
        best = next(iter(present or able_to[pair]), "")
        if best and left > 0:
            used[best] += left / speed[best]
    return dict(used)


def _cheapest_first(pair: Pair, lanes: Mapping[str, LaneSpec]) -> list[str]:
    """The classes that can do it, by their price for the same work."""
    spec = lanes.get(pair[0])
    fitting = [gpu_class for gpu_class in spec.speed if able(spec, gpu_class, pair[1])] if spec else []
    return sorted(fitting, key=lambda of: (price_of(of) / spec.speed[of] if spec else 0.0, of))


def _why(wanted: int, needed: int, have: int) -> str:
    there = "none is there" if not have else f"{have} {'is' if have == 1 else 'are'} there"
    if wanted > needed:
        return f"{there}; {needed} would do now, fewer are wanted once that held for ten minutes"
    if wanted > have:
        return f"{there}; what comes and waits needs {wanted} to be served in time"
    if wanted < have:
        return f"{there}; {wanted} would do, and no more were needed for ten minutes"
    return f"{there}, as many as what comes and waits needs"
