"""Guaranteed shares of the tiers: they bind only while they are demanded, the rest is lent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from callsheet.routing.seats import Seat
from callsheet.routing.tiers import TierRule


def running_of(seats: Iterable[Seat]) -> Counter[str]:
    """Running jobs per tier."""
    return Counter(seat.job.tier for seat in seats if seat.job is not None)


def guaranteed(
    seats: Sequence[Seat], waiting: Mapping[str, int], tiers: Iterable[TierRule]
) -> dict[str, int]:
    """GPUs that are each tier's now: its share of the fleet, at most its jobs that run or wait."""
    running = running_of(seats)
    return {
        tier.name: min(int(tier.share * len(seats)), running[tier.name] + waiting.get(tier.name, 0))
        for tier in tiers
    }


def lendable(seats: Sequence[Seat], waiting: Mapping[str, int], tiers: Iterable[TierRule]) -> int:
    """Running jobs of tiers that yield that may be asked to: those beyond the share that is demanded."""
    ruled = list(tiers)
    running, own, free = running_of(seats), guaranteed(seats, waiting, ruled), 0
    for tier in ruled:
        if tier.yields:
            free += max(running[tier.name] - own[tier.name], 0)
    return free
