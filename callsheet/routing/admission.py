"""Admission: a job that would wait longer than its tier promises is refused when it is submitted.

The wait that is predicted, for a job of a tier with work W before it, work E that waits in the tiers that are
served before its own, and work R that runs of these and its own, on a fleet that does C of work per second:

    the least of   (W + E + R) / (C - what comes to those tiers)   it is served after them
                   W / (its share x C)                             its share is served beside them
                   W / (what was served of its tier of late)       as it went

The least, since a job that could have been served must not be refused: C is the larger of what the table of
speeds says and what was served of late, and both averages go over a quarter of an hour, so that no gust of
arrivals counts as lasting. It is an estimate still, hence ``SURE``; a bound of only a few jobs' length can be
missed, since jobs are no fluid, and tenants take turns. Whoever is admitted and then has waited most of the
promise goes before all others of its tier, and yields to nobody (``benches.AGED``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from callsheet.records.lanes import Waiting
from callsheet.routing.estimates import LaneSpec, rough_capacity
from callsheet.routing.queues import parse_queue
from callsheet.routing.seats import Seat
from callsheet.routing.tiers import TierRule

ADMISSION = "admission"  # name under which the flows are remembered for those who submit
AVERAGE_S = 900.0  # over which arrivals and service are averaged
SURE = 0.9  # of the longest wait: a longer prediction refuses, since loads and failures lengthen waits
FRESH_S = 30.0  # older flows say nothing: the controllers are away


@dataclass(frozen=True, slots=True)
class Flows:
    """Work by tier, seconds on the reference GPU. Plain data: the store keeps it as JSON."""

    at: float = 0.0  # store time
    capacity: float = 0.0  # of the whole fleet, per second
    offered: Mapping[str, float] = field(default_factory=dict)  # ever submitted
    left: Mapping[str, float] = field(default_factory=dict)  # that waits
    running: Mapping[str, float] = field(default_factory=dict)  # that running jobs still have to do
    came: Mapping[str, float] = field(default_factory=dict)  # per second, averaged
    served: Mapping[str, float] = field(default_factory=dict)  # per second, averaged

    def to_json(self) -> dict[str, Any]:
        """Plain data; :meth:`from_json` reads it back."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Flows:
        """Read :meth:`to_json` back; what a newer version added is left out."""
        return cls(**{name: value for name, value in data.items() if name in cls.__dataclass_fields__})


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a new job of a tier has to expect."""

    wait_s: float
    work_s: float  # before it
    per_s: float  # work that its tier is served with


def flows(
    now: float,
    waiting: Iterable[Waiting],
    seats: Sequence[Seat],
    lanes: Mapping[str, LaneSpec],
    before: Flows,
) -> Flows:
    """The flows from here on. ``before``: those of the last tick."""
    offered: dict[str, float] = {}
    left: dict[str, float] = {}
    for one in waiting:
        tier = parse_queue(one.queue).tier
        offered[tier] = offered.get(tier, 0.0) + one.offered_s
        left[tier] = left.get(tier, 0.0) + one.work_s
    capacity = rough_capacity(Counter(seat.gpu.gpu_class for seat in seats), lanes.values())
    told = Flows(now, capacity, offered, left, _running(seats, lanes), before.came, before.served)
    past_s = now - before.at
    if not before.at or past_s <= 0:
        return told
    weight = 1.0 - math.exp(-past_s / AVERAGE_S)
    came, served = {}, {}
    for tier in offered:
        new = max(offered[tier] - before.offered.get(tier, 0.0), 0.0)
        gone = max(new - left[tier] + before.left.get(tier, 0.0), 0.0)
        came[tier] = (1 - weight) * before.came.get(tier, 0.0) + weight * new / past_s
        served[tier] = (1 - weight) * before.served.get(tier, 0.0) + weight * gone / past_s
    return replace(told, came=came, served=served)


def _running(seats: Iterable[Seat], lanes: Mapping[str, LaneSpec]) -> dict[str, float]:
    found: dict[str, float] = {}
    for seat in seats:
        if seat.job is not None and seat.lane in lanes:
            speed = lanes[seat.lane].speed.get(seat.gpu.gpu_class, 0.0)
            found[seat.job.tier] = found.get(seat.job.tier, 0.0) + seat.frees_s * speed
    return found


def predict(tier: str, work_s: float, seen: Flows, tiers: Sequence[TierRule]) -> Prediction:
    """The wait of a job with so much work of its tier before it; 0 s where nothing is known of the fleet."""
    names = [rule.name for rule in tiers]
    earlier = names[: names.index(tier)] if tier in names else []
    share = next((rule.share for rule in tiers if rule.name == tier), 0.0)
    capacity = max(seen.capacity, sum(seen.served.values()))
    rest = capacity - sum(seen.came.get(name, 0.0) for name in earlier)
    first_s = sum(seen.left.get(name, 0.0) for name in earlier)
    first_s += sum(seen.running.get(name, 0.0) for name in (*earlier, tier))
    ways = [(rest, work_s + first_s), (share * capacity, work_s), (seen.served.get(tier, 0.0), work_s)]
    waits = [(before_s / per_s, per_s) for per_s, before_s in ways if per_s > 0]
    wait_s, per_s = min(waits, default=(0.0, 0.0))
    return Prediction(wait_s, work_s, per_s)


def too_long(prediction: Prediction, rule: TierRule) -> bool:
    """Whether a job that expects this is to be refused."""
    return 0 < SURE * rule.longest_wait_s < prediction.wait_s


def retry_after_s(prediction: Prediction, rule: TierRule) -> float:
    """When the backlog will have shrunk enough, if nothing more comes: whole seconds from now."""
    return float(math.ceil(max(prediction.wait_s - SURE * rule.longest_wait_s, 1.0)))


def refusal(prediction: Prediction, jobs: int, rule: TierRule, tiers: Sequence[TierRule]) -> str:
    """What the caller reads."""
    names = [one.name for one in tiers]
    earlier = names[: names.index(rule.name)] if rule.name in names else []
    other = f", or in tier {earlier[-1]}, which is served before it" if earlier else ""
    return (
        f"tier {rule.name} is full: about {prediction.wait_s:.0f} s of waiting lie before this job ({jobs} "
        f"jobs with {prediction.work_s:.0f} s of work, of which about {prediction.per_s:.1f} s are done each "
        f"second), and the tier promises a start within {rule.longest_wait_s:.0f} s. Nothing was stored. "
        f"Submit it again in {retry_after_s(prediction, rule):.0f} s{other}."
    )
