"""What the policy decides from: one picture of the fleet, and what it remembers of the pictures before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from callsheet.records.lanes import Desired, Waiting
from callsheet.routing.estimates import Costs, LaneSpec
from callsheet.routing.queues import parse_queue
from callsheet.routing.seats import Seat
from callsheet.routing.tiers import TIERS, TierRule

MEMORY = "rebalance"  # name of what one rebalance leaves to the next


@dataclass(frozen=True, slots=True)
class Memory:
    """What one rebalance leaves to the next. Plain data: the store keeps it as JSON."""

    at: float = 0.0  # store time of the rebalance
    since: float = 0.0  # store time of the first one
    offered: Mapping[str, float] = field(default_factory=dict)  # queue -> work ever submitted to it, seconds
    rates: Mapping[str, float] = field(default_factory=dict)  # queue -> work that comes per second, averaged
    peaks: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)  # lane -> (since, GPUs)
    targets_at: float = 0.0  # store time of the targets
    targets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # class -> lane -> GPUs
    moves: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # those still to load, alike
    leaves: Sequence[tuple[str, Sequence[str], float]] = ()  # (class, weights, GPUs with these that may load)
    needed: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)  # as peaks, by class
    flows: Mapping[str, Any] = field(default_factory=dict)  # see admission.py
    wanted: Mapping[str, tuple[int, str]] = field(default_factory=dict)  # class -> (GPUs, why)

    def to_json(self) -> dict[str, Any]:
        """Plain data; :meth:`from_json` reads it back."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Memory:
        """Read :meth:`to_json` back; what a newer version added is left out."""
        known = {name: value for name, value in data.items() if name in cls.__dataclass_fields__}
        return cls(**known)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The fleet, what waits, and what was decided before."""

    now: float  # store time
    seats: Sequence[Seat]
    waiting: Sequence[Waiting]
    lanes: Mapping[str, LaneSpec]
    desired: Mapping[str, Desired] = field(default_factory=dict)  # GPU name -> what was ordered
    memory: Memory = field(default_factory=Memory)
    tiers: Sequence[TierRule] = TIERS
    costs: Costs = field(default_factory=Costs)


def waiting_jobs(snapshot: Snapshot) -> dict[str, int]:
    """Tier -> jobs that wait."""
    count: Counter[str] = Counter()
    for one in snapshot.waiting:
        count[parse_queue(one.queue).tier] += one.jobs
    return dict(count)
