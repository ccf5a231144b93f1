"""What the sections of a simulation's page share: distributions, which runs and lines there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from callsheet.simulator import axes, plots
from callsheet.simulator.markup import COLOURS
from callsheet.simulator.runs import POLICIES, Outcome
from callsheet.simulator.scenario import Scenario
from callsheet.simulator.spread import quantile

SHORTEST_S = 0.01  # where the logarithmic axis begins
QUANTILES = 200  # points of a line


def distribution(what: str, whose: str, curves: Iterable[tuple[str, Sequence[float], str]]) -> str:
    """Cumulative distributions of seconds: name, values and class of each line."""
    known = [(name, sorted(values), kind) for name, values, kind in curves if values]
    longest = max((values[-1] for _, values, _ in known), default=1.0)
    x = axes.log(f"{what}, s (log; {SHORTEST_S:g} = at most that)", SHORTEST_S, max(longest, 1.0))
    shares = [place / QUANTILES for place in range(QUANTILES + 1)]
    drawn = [
        plots.Line(name, [(quantile(values, share), 100.0 * share) for share in shares], kind)
        for name, values, kind in known
    ]
    return plots.lines(what, x, axes.Axis(f"{whose}, %", 0.0, 100.0), drawn)


def tiers_of(scenario: Scenario) -> list[str]:
    """Tiers that have jobs, in order."""
    used = {arrival.tier for arrival in scenario.arrivals}
    return [tier.name for tier in scenario.tiers if tier.name in used]


def with_jobs(tier: str, outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Runs in which a tier had jobs."""
    return [each for each in outcomes if any(life.arrival.tier == tier for life in each.result.lives)]


def policy_keys(outcomes: Iterable[Outcome]) -> list[tuple[str, str]]:
    """Names and classes for a legend."""
    return [(outcome.result.policy, line_kind(outcome.result.policy)) for outcome in outcomes]


def line_kind(policy: str) -> str:
    """The class of a policy's lines: the same in every plot."""
    place = POLICIES.index(policy) % COLOURS if policy in POLICIES else COLOURS - 1
    return f"c{place} d{place}"
