"""The section of a simulation's page on tenants: what each gets, and how long each waits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from callsheet.simulator import axes, plots
from callsheet.simulator.fairness import parts_of
from callsheet.simulator.markup import figures, line_legend, section, table
from callsheet.simulator.panels import distribution, line_kind, policy_keys, tiers_of, with_jobs
from callsheet.simulator.report import number, seconds
from callsheet.simulator.runs import Outcome
from callsheet.simulator.scenario import Scenario
from callsheet.simulator.spread import spread

COLUMNS = (
    "policy",
    "tier",
    "tenants",
    "mean wait p50 s",
    "p95 s",
    "max s",
    "always with work",
    "jain",
    "least part",
    "most part",
)


def fairness(scenario: Scenario, outcomes: Sequence[Outcome]) -> str:
    """Tenants beside each other."""
    parts = {each.result.policy: parts_of(each.result.lives, scenario.window_s) for each in outcomes}
    tiers = tiers_of(scenario)
    waits = [(f"Tier {tier}: mean wait of a tenant", _waits(tier, outcomes)) for tier in tiers]
    shares = [
        (f"Tier {tier}: useful work of a tenant", _shares({p: parts[p].get(tier, {}) for p in parts}))
        for tier in tiers
        if any(len(parts[policy].get(tier, {})) > 1 for policy in parts)
    ]
    rows = [
        _row(tier, each, list(parts[each.result.policy].get(tier, {}).values()))
        for tier in tiers
        for each in with_jobs(tier, outcomes)
    ]
    return section(
        "Tenants",
        "Fair parts are told by tenants that always have work: all weigh the same, so 1 is the equal part, "
        "and Jain's index is 1 when all have it. There is no plot of parts without two such tenants.",
        line_legend(policy_keys(outcomes)),
        figures([*waits, *shares]),
        table(COLUMNS, rows),
    )


def _waits(tier: str, outcomes: Sequence[Outcome]) -> str:
    curves = [
        (each.result.policy, _mean_waits(tier, each), line_kind(each.result.policy))
        for each in with_jobs(tier, outcomes)
    ]
    return distribution("Mean wait", "Tenants", curves)


def _mean_waits(tier: str, outcome: Outcome) -> list[float]:
    """Seconds, one for each tenant whose jobs were started."""
    found: dict[str, list[float]] = defaultdict(list)
    for life in outcome.result.lives:
        if life.arrival.tier == tier and life.started_at is not None:
            found[life.arrival.tenant].append(life.started_at - life.arrival.at_s)
    return [sum(each) / len(each) for each in found.values()]


def _shares(parts: Mapping[str, Mapping[str, float]]) -> str:
    """Parts over the equal part, the smallest first."""
    curves = []
    for policy, theirs in parts.items():
        ranked = _relative(list(theirs.values()))
        last = max(len(ranked) - 1, 1)
        points = [(100.0 * place / last, part) for place, part in enumerate(ranked)]
        curves.append(plots.Line(policy, points, line_kind(policy)))
    most = max((part for curve in curves for _, part in curve.points), default=1.0)
    x = axes.Axis("Tenants that always have work, by part, %", 0.0, 100.0)
    return plots.lines("Parts", x, axes.linear("Work over equal part", max(most, 2.0)), curves)


def _relative(parts: Sequence[float]) -> list[float]:
    """Sorted, over their mean; none for fewer than two."""
    if len(parts) < 2 or not sum(parts):
        return []
    return sorted(part * len(parts) / sum(parts) for part in parts)


def _row(tier: str, outcome: Outcome, parts: Sequence[float]) -> tuple[str, ...]:
    means = _mean_waits(tier, outcome)
    ranked: list[float | None] = [*_relative(parts)] or [None]
    wait = spread(means)
    return (
        outcome.result.policy,
        tier,
        f"{len(means):,}",
        *map(seconds, (wait.p50, wait.p95, wait.max)),
        f"{len(parts):,}",
        number(outcome.measures.jain_by_tier[tier], 3),
        number(ranked[0], 2),
        number(ranked[-1], 2),
    )
