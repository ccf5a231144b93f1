"""Whether tenants of a tier get equal parts: Jain's index over those that always have work."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from callsheet.simulator.result import Life

SKIPPED = 0.1  # of the time from the first arrival to the window's end: queues fill


def jain(parts: Sequence[float]) -> float | None:
    """1 when all parts are equal, 1/n when one of n has all; None for fewer than two, or nothing to share."""
    squares = sum(part * part for part in parts)
    if len(parts) < 2 or squares == 0.0:
        return None
    return sum(parts) ** 2 / (len(parts) * squares)


def parts_of(lives: Sequence[Life], window_s: float) -> dict[str, dict[str, float]]:
    """Tier -> tenant -> useful work, for tenants that have work at every moment of the span that counts.

    The work is in seconds of the reference GPU, inside the span. A tenant has work from a job's arrival to
    its end.
    """
    first_s = min((life.arrival.at_s for life in lives), default=window_s)
    begin_s = first_s + SKIPPED * (window_s - first_s)
    parts: dict[str, dict[str, float]] = defaultdict(dict)
    for (tier, tenant), theirs in _by_tenant(lives).items():
        if _always_has_work(theirs, begin_s, window_s):
            parts[tier][tenant] = sum(_done_s(life, begin_s, window_s) for life in theirs)
    return parts


def _by_tenant(lives: Iterable[Life]) -> Mapping[tuple[str, str], list[Life]]:
    """The admitted jobs of each tenant in each tier."""
    found: dict[tuple[str, str], list[Life]] = defaultdict(list)
    for life in lives:
        if not life.refused:
            found[life.arrival.tier, life.arrival.tenant].append(life)
    return found


def _always_has_work(lives: Iterable[Life], begin_s: float, end_s: float) -> bool:
    """Whether the jobs' times from arrival to end cover the span without a gap."""
    covered_s = begin_s
    for life in sorted(lives, key=lambda each: each.arrival.at_s):
        if life.arrival.at_s > covered_s or covered_s >= end_s:
            break
        covered_s = max(covered_s, math.inf if life.ended_at is None else life.ended_at)
    return covered_s >= end_s


def _done_s(life: Life, begin_s: float, end_s: float) -> float:
    """Its useful work in the span; only the sum over the window is known, so it counts as evenly spread."""
    if life.started_at is None:
        return 0.0
    ended_s = end_s if life.ended_at is None else min(life.ended_at, end_s)
    whole_s = ended_s - life.started_at
    inside_s = ended_s - max(life.started_at, begin_s)
    return life.done_s * max(inside_s, 0.0) / whole_s if whole_s > 0.0 else 0.0
