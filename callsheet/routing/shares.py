"""Guaranteed shares of the tiers: they bind only while they are demanded, the rest is lent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from callsheet.routing.seats import Seat
from callsheet.routing.tiers import TierRule


def running_of(seats: Iterable[Seat]) -> Counter[str]:
    """Running jobs per tier."""
    return Counter(seat.job.tier for seat in seats if seat.job is not None)


def owed(seats: Sequence[Seat], waiting: Mapping[str, int], tiers: Iterable[TierRule]) -> dict[str, int]:
    """GPUs that each tier is owed now: what it lacks of its share, at most the jobs that wait."""
    running = running_of(seats)
    return {
        tier.name: max(min(int(tier.share * len(seats)) - running[tier.name], waiting.get(tier.name, 0)), 0)
        for tier in tiers
    }


def lendable(seats: Sequence[Seat], waiting: Mapping[str, int], tiers: Iterable[TierRule]) -> int:
    """Running jobs of tiers that yield that may be asked to: those beyond the share that is demanded."""
    running, free = running_of(seats), 0
    for tier in tiers:
        if tier.yields:
            demanded = running[tier.name] + waiting.get(tier.name, 0)
            free += max(running[tier.name] - min(int(tier.share * len(seats)), demanded), 0)
    return free
