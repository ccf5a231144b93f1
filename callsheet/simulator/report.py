"""Measures as one JSON document, and as text cells for tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from callsheet.simulator.measures import Measures, gpus_of
from callsheet.simulator.scenario import Scenario

NOTHING = "-"

#: Columns of ``policy_rows``.
POLICY_COLUMNS = (
    "policy",
    "goodput",
    "useful",
    "loading",
    "wasted",
    "idle",
    "loads",
    "moves",
    "preemptions",
    "jain",
    "drain s",
    "finished",
    "refused",
    "took s",
)

#: Columns of ``wait_rows``.
WAIT_COLUMNS = (
    "policy",
    "tier",
    "wait p50 s",
    "wait p95 s",
    "wait p99 s",
    "wait max s",
    "fluid p95 s",
    "fluid max s",
    "turnaround p50 s",
    "turnaround p95 s",
    "turnaround max s",
)


def document(scenario: Scenario, measures: Sequence[Measures]) -> dict[str, Any]:
    """What ``callsheet simulate -o json`` prints."""
    return {
        "scenario": {
            "name": scenario.name,
            "window_s": scenario.window_s,
            "load": scenario.load,
            "seed": scenario.seed,
            "noise": scenario.noise,
            "gpus": gpus_of(scenario),
            "jobs": len(scenario.arrivals),
            "spikes": [asdict(spike) for spike in scenario.spikes],
        },
        "policies": {one.policy: _rounded(_without_name(one)) for one in measures},
    }


def policy_rows(measures: Sequence[Measures]) -> list[tuple[str, ...]]:
    """One row a policy."""
    return [
        (
            one.policy,
            number(one.goodput, 3),
            percent(one.useful_share),
            percent(one.loading_share),
            percent(one.wasted_share),
            percent(one.idle_share),
            f"{one.loads:,}",
            f"{one.moved_queues:,}",
            f"{one.preemptions:,}",
            number(one.jain, 3),
            seconds(one.drain_s),
            f"{one.finished:,}",
            f"{one.refused:,}",
            seconds(one.took_s),
        )
        for one in measures
    ]


def wait_rows(measures: Sequence[Measures]) -> list[tuple[str, ...]]:
    """One row a policy and tier that has jobs."""
    return [
        (one.policy, tier, *map(seconds, _waits(one, tier)))
        for one in measures
        for tier in one.wait_s
        if one.wait_s[tier].max is not None
    ]


def seconds(value: float | None) -> str:
    """Seconds, as exactly as they matter: ``0.42``, ``12.3``, ``1,234``."""
    if value is None:
        return NOTHING
    return number(value, 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0)


def number(value: float | None, digits: int) -> str:
    """A number with so many digits after the point."""
    return NOTHING if value is None else f"{value:,.{digits}f}"


def percent(value: float | None) -> str:
    """A share as ``12.3 %``."""
    return NOTHING if value is None else f"{100.0 * value:.1f} %"


def _waits(one: Measures, tier: str) -> tuple[float | None, ...]:
    wait, flow, around = one.wait_s[tier], one.fluid_wait_s[tier], one.turnaround_s[tier]
    fluid = (flow.p95, flow.max)
    return (wait.p50, wait.p95, wait.p99, wait.max, *fluid, around.p50, around.p95, around.max)


def _without_name(one: Measures) -> dict[str, Any]:
    return {key: value for key, value in asdict(one).items() if key != "policy"}


def _rounded(value: Any) -> Any:
    """The same with numbers of six digits after the point: more are noise."""
    if isinstance(value, Mapping):
        return {key: _rounded(inner) for key, inner in value.items()}
    return round(value, 6) if isinstance(value, float) else value
