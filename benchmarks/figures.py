"""What is made of measurements: percentiles, ratios, goals, the document and its exit code. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SIGNIFICANT = 4  # digits of a figure: the rest is noise


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure must hold, beyond the bound itself."""

    figure: str
    sign: str  # "<" or ">"
    bound: float

    def met(self, value: float) -> bool:
        """Whether a measured value holds it. NaN never does."""
        return value < self.bound if self.sign == "<" else value > self.bound

    @property
    def text(self) -> str:
        """As a reader writes it: ``< 50``."""
        return f"{self.sign} {self.bound:g}"


#: Speed and size as they were asked for; the ratio is the design's.
GOALS = (
    Goal("submit_per_s", ">", 500),
    Goal("claim_to_first_step_ms_p50", "<", 50),
    Goal("claim_to_first_step_ms_p99", "<", 50),
    Goal("rebalance_policy_ms_p50", "<", 100),
    Goal("rebalance_ms_p50", "<", 300),
    Goal("rebalance_peak_mb", "<", 200),
    Goal("dispatch_vs_celery", "<", 2.5),
    Goal("encode_s", "<", 2),
    Goal("idle_cpu_share", "<", 0.01),
)


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that at least ``share`` (0 .. 1) of them do not exceed (nearest rank).

    Raises ValueError without samples, or when ``share`` is no share.
    """
    if not samples or not 0 <= share <= 1:
        raise ValueError(f"no percentile {share} of {len(samples)} samples; give some, and a share in 0 .. 1")
    return sorted(samples)[max(math.ceil(share * len(samples)), 1) - 1]


def median(samples: Sequence[float]) -> float:
    """The middle one, by nearest rank."""
    return percentile(samples, 0.5)


def ratio(ours: float, theirs: float) -> float:
    """Ours in units of theirs; NaN when theirs is zero, as nothing can be said then."""
    return ours / theirs if theirs else math.nan


def in_ms(name: str, seconds: Sequence[float]) -> dict[str, float]:
    """``<name>_ms_p50`` and ``<name>_ms_p99`` of durations in seconds."""
    return {
        f"{name}_ms_{label}": 1000 * percentile(seconds, share)
        for label, share in (("p50", 0.5), ("p99", 0.99))
    }


def document(figures: Mapping[str, float], *, machine: Mapping[str, Any], **facts: Any) -> dict[str, Any]:
    """The JSON document: every figure, then each goal that was measured, then where it was measured."""
    goals = {
        goal.figure: {"goal": goal.text, "met": goal.met(figures[goal.figure])}
        for goal in GOALS
        if goal.figure in figures
    }
    shown = {name: _shown(value) for name, value in figures.items()}
    return {**shown, "goals": goals, "machine": dict(machine), **facts}


def missed(made: Mapping[str, Any]) -> list[str]:
    """Names of the figures of a document whose goal was missed."""
    return [name for name, goal in made["goals"].items() if not goal["met"]]


def exit_code(made: Mapping[str, Any]) -> int:
    """0 when every goal that was measured is met, else 1."""
    return 1 if missed(made) else 0


def _shown(value: float) -> float | None:
    # JSON has no NaN
    return float(f"{value:.{SIGNIFICANT}g}") if math.isfinite(value) else None
