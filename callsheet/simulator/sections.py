"""Sections of a simulation's page: waits, use of GPUs, queues, subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from callsheet.simulator import axes, plots
from callsheet.simulator.fluid import fluid
from callsheet.simulator.markup import COLOURS, band_legend, figures, line_legend, section, table
from callsheet.simulator.measures import gpus_of
from callsheet.simulator.panels import distribution, line_kind, policy_keys, tiers_of, with_jobs
from callsheet.simulator.report import WAIT_COLUMNS, number, percent, wait_rows
from callsheet.simulator.result import Result
from callsheet.simulator.runs import Outcome
from callsheet.simulator.scenario import Scenario

USES = ("useful", "loading", "wasted", "idle")
FLUID = "fluid"


def waits(scenario: Scenario, outcomes: Sequence[Outcome]) -> str:
    """How long jobs of each tier wait, as distributions."""
    flows = fluid(scenario).waits_s
    drawn = []
    for tier in tiers_of(scenario):
        curves = [(FLUID, flows[tier], "fluid"), *_waits(tier, outcomes)]
        drawn.append((f"Tier {tier}", distribution("Wait", "Jobs", curves)))
    return section(
        "Waits",
        "From arrival to the first step of denoising, weights loaded. A line tells how many jobs wait at "
        "most so long. Fluid: the whole fleet works on one job after the other, tiers in order, at no cost.",
        line_legend([*policy_keys(outcomes), (FLUID, "fluid")]),
        figures(drawn),
        table(WAIT_COLUMNS, wait_rows([outcome.measures for outcome in outcomes])),
    )


def utilisation(scenario: Scenario, outcomes: Sequence[Outcome]) -> str:
    """What the GPUs do over time."""
    gpus = gpus_of(scenario)
    drawn, up = [], axes.Axis("GPUs, %", 0.0, 100.0)
    for outcome in outcomes:
        samples = outcome.result.samples
        bands = [
            plots.Band(use, [100.0 * getattr(sample, use) / gpus for sample in samples], use) for use in USES
        ]
        drawn.append((outcome.result.policy, _over_time(scenario, outcome, up, bands)))
    rows = [
        (outcome.result.policy, *(percent(getattr(outcome.measures, f"{use}_share")) for use in USES))
        for outcome in outcomes
    ]
    return section(
        "Use of the GPUs",
        "At moments of the window; the shares below are exact, over the whole window.",
        band_legend((use, use) for use in USES),
        figures(drawn),
        table(("policy", *USES), rows),
    )


def queues(scenario: Scenario, outcomes: Sequence[Outcome]) -> str:
    """How many jobs wait over time."""
    rows, drawn = [], []
    for tier in tiers_of(scenario):
        curves = []
        for outcome in with_jobs(tier, outcomes):
            points = [(sample.at_s, float(sample.waiting.get(tier, 0))) for sample in outcome.result.samples]
            counts = [count for _, count in points] or [0.0]
            policy = outcome.result.policy
            curves.append(plots.Line(policy, points, line_kind(policy)))
            rows.append((policy, tier, number(sum(counts) / len(counts), 1), number(max(counts), 0)))
        drawn.append((f"Tier {tier}", _counts(scenario, curves)))
    return section(
        "Queue depth",
        "Jobs that wait for a GPU, at moments of the window. Spikes are shaded.",
        line_legend(policy_keys(outcomes)),
        figures(drawn),
        table(("policy", "tier", "mean jobs", "most jobs"), rows),
    )


def subscriptions(scenario: Scenario, outcomes: Sequence[Outcome]) -> str:
    """How GPUs move between models."""
    groups = _groups([outcome.result for outcome in outcomes])
    most = max((sum(s.lanes.values()) for o in outcomes for s in o.result.samples), default=0)
    up = axes.linear("GPUs", max(float(most), 1.0))
    drawn, rows = [], []
    for outcome in outcomes:
        bands = [
            plots.Band(name, _served(outcome.result, lanes), f"c{place}")
            for place, (name, lanes) in enumerate(groups)
        ]
        drawn.append((outcome.result.policy, _over_time(scenario, outcome, up, bands)))
        means = (number(_mean(band.heights), 1) for band in bands)
        moves = (f"{outcome.result.moved_queues:,}", f"{outcome.result.loads:,}")
        rows.append((outcome.result.policy, *moves, *means))
    names = [name for name, _ in groups]
    return section(
        "Subscriptions",
        "GPUs that serve each model, at moments of the window; one with the weights of two models counts for "
        "both. Below: changes of subscriptions, loads of weights, and the mean of each model.",
        band_legend((name, f"c{place}") for place, name in enumerate(names)),
        figures(drawn),
        table(("policy", "moves", "loads", *names), rows),
    )


def _waits(tier: str, outcomes: Sequence[Outcome]) -> list[tuple[str, list[float], str]]:
    curves = []
    for outcome in with_jobs(tier, outcomes):
        lives = (life for life in outcome.result.lives if life.arrival.tier == tier)
        seconds = [life.started_at - life.arrival.at_s for life in lives if life.started_at is not None]
        curves.append((outcome.result.policy, seconds, line_kind(outcome.result.policy)))
    return curves


def _over_time(scenario: Scenario, outcome: Outcome, up: axes.Axis, bands: Sequence[plots.Band]) -> str:
    places = [sample.at_s for sample in outcome.result.samples]
    return plots.stack(outcome.result.policy, _time(scenario), up, places, bands)


def _counts(scenario: Scenario, curves: Sequence[plots.Line]) -> str:
    most = max((count for curve in curves for _, count in curve.points), default=0.0)
    spans = [(spike.begins_s, spike.begins_s + spike.lasts_s) for spike in scenario.spikes]
    up = axes.linear("Waiting jobs", max(most, 5.0))
    return plots.lines("Waiting jobs", _time(scenario), up, curves, spans)


def _time(scenario: Scenario) -> axes.Axis:
    return axes.Axis("Time, s", 0.0, scenario.window_s)


def _groups(results: Sequence[Result]) -> list[tuple[str, list[str]]]:
    """Models by what most GPUs serve, each by itself; those beyond the colours are one group."""
    served: dict[str, int] = {}
    for result in results:
        for sample in result.samples:
            for lane, gpus in sample.lanes.items():
                served[lane] = served.get(lane, 0) + gpus
    ranked = sorted(served, key=lambda lane: (-served[lane], lane))
    if len(ranked) <= COLOURS:
        return [(lane, [lane]) for lane in sorted(ranked)]
    first, rest = ranked[: COLOURS - 1], ranked[COLOURS - 1 :]
    return [*((lane, [lane]) for lane in first), (f"{len(rest)} others", rest)]


def _served(result: Result, lanes: Sequence[str]) -> list[float]:
    return [float(sum(sample.lanes.get(lane, 0) for lane in lanes)) for sample in result.samples]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


Section = Callable[[Scenario, Sequence[Outcome]], str]
SECTIONS: tuple[Section, ...] = (waits, utilisation, queues, subscriptions)
