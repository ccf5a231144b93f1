"""Axes of plots: where a value lies, and which values get a label."""

from __future__ import annotations

import math
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis, from ``low`` to ``high``; a logarithmic one has ``low`` above 0."""

    label: str  # with the unit
    low: float
    high: float
    log: bool = False

    def place(self, value: float) -> float:
        """0 at the low end, 1 at the high end; values beyond lie on the end."""
        low, high, value = (self._scale(each) for each in (self.low, self.high, max(value, self.low)))
        return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.0

    def ticks(self) -> list[tuple[float, str]]:
        """Round values on the axis, with their labels."""
        values = self._powers() if self.log else self._rounds()
        return [(value, _short(value)) for value in values]

    def _scale(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def _powers(self) -> list[float]:
        first, last = (round(math.log10(end)) for end in (self.low, self.high))
        return [10.0**power for power in range(first, last + 1)]

    def _rounds(self) -> list[float]:
        step = _step((self.high - self.low) / 5.0)
        first, last = math.ceil(self.low / step), math.floor(self.high / step + 1e-9)
        return [round(number * step, 12) for number in range(first, last + 1)]


def linear(label: str, high: float, low: float = 0.0) -> Axis:
    """An axis from ``low`` to ``high`` or a little more, so that it ends with a label."""
    step = _step((high - low) / 5.0)
    return Axis(label, low, low + step * max(math.ceil((high - low) / step - 1e-9), 1))


def log(label: str, low: float, high: float) -> Axis:
    """A logarithmic axis from ``low``, a power of ten, to the power of ten at or above ``high``."""
    power = max(math.ceil(math.log10(max(high, low))), round(math.log10(low)) + 1)
    return Axis(label, low, 10.0**power, log=True)


def _short(value: float) -> str:
    """At most five characters: ``2.5``, ``1,000``, ``40k``, ``1M``."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= 10_000.0 and value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:,g}"


def _step(least: float) -> float:
    """The smallest round number that is not below ``least``."""
    if least <= 0.0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in _STEPS if step * power >= least * (1.0 - 1e-9))
