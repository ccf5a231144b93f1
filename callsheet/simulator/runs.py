"""Runs a policy by its name: callsheet's own, callsheet's for the first tier alone, or a baseline."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from callsheet.errors import SettingsError
from callsheet.simulator.baseline_plans import BASELINES
from callsheet.simulator.measures import Measures, measure
from callsheet.simulator.result import Result
from callsheet.simulator.scenario import Scenario

POLICIES = ("callsheet", "pro-only", *BASELINES)
ALL = "all"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run, and what it comes to."""

    result: Result
    measures: Measures


def outcome(policy: str, scenario: Scenario) -> Outcome:
    """Run a policy and measure it. Raises SettingsError as :func:`run` does."""
    result = run(policy, scenario)
    return Outcome(result, measure(scenario_for(policy, scenario), result))


def run(policy: str, scenario: Scenario) -> Result:
    """Run a policy until every job has ended; ``took_s`` is the wall time.

    Raises SettingsError for an unknown name, and when the policy cannot run the scenario.
    """
    if policy not in POLICIES:
        raise SettingsError(f"there is no policy {policy!r}: choose one of {', '.join(POLICIES)}, or {ALL}")
    told = scenario_for(policy, scenario)
    begun = time.perf_counter()
    result = _run(policy, told)
    result.policy, result.took_s = policy, time.perf_counter() - begun
    return result


def scenario_for(policy: str, scenario: Scenario) -> Scenario:
    """What a policy is run on: ``pro-only`` has the traffic of the first tier alone.

    Raises SettingsError when the first tier has no jobs.
    """
    if policy != "pro-only":
        return scenario
    first = scenario.tiers[0].name
    arrivals = tuple(arrival for arrival in scenario.arrivals if arrival.tier == first)
    if not arrivals:
        raise SettingsError(f"the traffic has no job of tier {first}: leave the policy pro-only out")
    return replace(
        scenario,
        arrivals=arrivals,
        spikes=tuple(spike for spike in scenario.spikes if spike.tier in ("", first)),
    )


def named(policies: Iterable[str]) -> tuple[str, ...]:
    """The policies that are meant, each once: ``all`` means every one."""
    return tuple(dict.fromkeys(each for name in policies for each in (POLICIES if name == ALL else (name,))))


def _run(policy: str, scenario: Scenario) -> Result:
    # Each loads what the other does not need: a baseline starts without the store and its rules.
    if policy in BASELINES:
        from callsheet.simulator.baselines import run_baseline

        return run_baseline(policy, scenario)
    from callsheet.simulator.replay import replay

    return replay(scenario)
