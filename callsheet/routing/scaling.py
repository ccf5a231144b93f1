"""How many GPUs of each class are wanted: for what comes, what waits, and what each tier is promised.

    work wanted = rate of arrivals + backlog / horizon          seconds on the reference GPU, per second

by tier, lane and class that its jobs need. A tier's backlog shall be served within the horizon: short for a
tier that preempts, a part of the longest wait for others. While other tiers demand what they are guaranteed,
a tier has no more than the rest of the GPUs: its work is raised by that. The work goes first to the classes
that are there, those first that cost least for it, and what is left to the one that costs least of all. No
GPU is at work all the time, hence ``BUSY``.

More is wanted at once; fewer only when ten minutes have passed in which no more were needed, so that a number
does not follow each gust of arrivals. An autoscaler is to read ``Memory.wanted`` (what ``callsheet rebalance
--dry-run`` shows as GPUs wanted), add GPUs up to it, and drain those beyond it. Nothing here does that yet.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from callsheet.records.lanes import Waiting
from callsheet.routing.classes import KNOWN
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
    exact = gpus_for(work_wanted(list(waiting), averages, tiers), have, lanes)
    due = {c: math.ceil(exact.get(c, 0.0) / BUSY - EXACT) for c in {*have, *exact}}
    needed = {c: rows for c, rows in peaks(now, before, due).items() if c in due or any_of(rows)}
    most = {c: int(gpus) for c, gpus in sorted(cover(needed).items())}
    return Scale({c: (gpus, _why(gpus, due.get(c, 0), have[c])) for c, gpus in most.items()}, needed)


def any_of(rows: Iterable[tuple[float, float]]) -> bool:
    """Whether a GPU was needed in any of these minutes."""
    return any(gpus > 0 for _, gpus in rows)


def work_wanted(
    waiting: Sequence[Waiting], averages: Mapping[str, float], tiers: Sequence[TierRule]
) -> dict[Pair, float]:
    """Work per second by lane and need, seconds on the reference GPU."""
    of_tier: dict[str, defaultdict[Pair, float]] = {rule.name: defaultdict(float) for rule in tiers}
    horizons = {rule.name: horizon_s(rule) for rule in tiers}
    for one in waiting:
        name = parse_queue(one.queue)
        per_s = averages.get(one.queue, 0.0) + one.work_s / horizons.get(name.tier, HORIZON_S)
        if name.tier in of_tier and per_s > 0:
            of_tier[name.tier][name.lane, name.gpu_class] += per_s
    shares = {rule.name: rule.share for rule in tiers if of_tier[rule.name]}
    wanted: dict[Pair, float] = {}
    for pair in {pair for work in of_tier.values() for pair in work}:
        alone = (of_tier[t][pair] / (1.0 - _others(shares, t)) for t in shares if pair in of_tier[t])
        wanted[pair] = max(sum(work.get(pair, 0.0) for work in of_tier.values()), *alone)
    return wanted


def horizon_s(rule: TierRule) -> float:
    """In which a tier's backlog shall be served."""
    if rule.preempts:
        return URGENT_S
    return min(HORIZON_S, PART * rule.longest_wait_s) if rule.longest_wait_s else HORIZON_S


def _others(shares: Mapping[str, float], tier: str) -> float:
    """What the other tiers with work are guaranteed of the GPUs."""
    return min(sum(share for name, share in shares.items() if name != tier), OTHERS)


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
    return sorted(fitting, key=lambda of: (_price(of) / spec.speed[of] if spec else 0.0, of))


def _price(gpu_class: str) -> float:
    return KNOWN[gpu_class].price if gpu_class in KNOWN else 1.0


def _why(wanted: int, needed: int, have: int) -> str:
    there = f"{have} are there"
    if wanted > needed:
        return f"{there}; {needed} would do now, and {wanted} were needed within the last ten minutes"
    if wanted > have:
        return f"{there}; what comes and waits needs {wanted} to be served in time"
    if wanted < have:
        return f"{there}; {wanted} would do, and no more were needed for ten minutes"
    return f"{there}, as many as what comes and waits needs"
