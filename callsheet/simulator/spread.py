"""How seconds spread over jobs: percentiles by linear interpolation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles. All are None when there is nothing to rank."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None


def spread(values: Iterable[float]) -> Spread:
    """The spread of some values, in their unit."""
    ranked = sorted(values)
    if not ranked:
        return Spread()
    return Spread(quantile(ranked, 0.5), quantile(ranked, 0.95), quantile(ranked, 0.99), ranked[-1])


def quantile(ranked: Sequence[float], share: float) -> float:
    """The value below which a share (0 to 1) lies; ``ranked`` is sorted and holds at least one."""
    place = share * (len(ranked) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (place - below) * (ranked[above] - ranked[below])
