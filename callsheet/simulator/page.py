"""One page that shows a simulation: self-contained HTML without a script, plots as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from callsheet.simulator.fairness_section import fairness
from callsheet.simulator.markup import section, table
from callsheet.simulator.page_style import style
from callsheet.simulator.report import POLICY_COLUMNS, policy_rows
from callsheet.simulator.runs import Outcome
from callsheet.simulator.scenario import Scenario, Spike
from callsheet.simulator.sections import SECTIONS


def page(scenario: Scenario, outcomes: Sequence[Outcome]) -> str:
    """The HTML of one or more runs of a scenario, policies side by side."""
    sections = (make(scenario, outcomes) for make in (*SECTIONS, fairness))
    parts = (_head(scenario), _summary(outcomes), *sections)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>callsheet simulate: {escape(scenario.name)}</title><style>{style()}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _head(scenario: Scenario) -> str:
    fleets = ", ".join(f"{one.count:,} {one.gpu_class} of {one.vram_gb:g} GB" for one in scenario.fleets)
    load = f"load {scenario.load:g}" if scenario.load else "load as it came"
    facts = [
        f"{len(scenario.arrivals):,} jobs of {len(scenario.models)} models in {scenario.window_s:,g} s",
        f"on {fleets}",
        f"{load}, seed {scenario.seed}, error of estimates {scenario.noise:g}",
        *(_spike(spike) for spike in scenario.spikes),
        *(f"{death.count} {death.gpu_class} die at {death.at_s:g} s" for death in scenario.deaths),
    ]
    return f"<h1>{escape(scenario.name)}</h1><p>{'; '.join(escape(fact) for fact in facts)}.</p>"


def _spike(spike: Spike) -> str:
    whose = f" of tier {spike.tier}" if spike.tier else ""
    return f"{spike.factor:g} times the arrivals{whose} from {spike.begins_s:g} s for {spike.lasts_s:g} s"


def _summary(outcomes: Sequence[Outcome]) -> str:
    return section(
        "Policies",
        "Goodput is useful work inside the window over what could be done: the lesser of what was offered "
        "and what the fleet can do. Useful, loading, wasted and idle are shares of all GPU time.",
        table(POLICY_COLUMNS, policy_rows([outcome.measures for outcome in outcomes])),
    )
