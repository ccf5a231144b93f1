"""Golden replays: small traffic of a seeded generator, to the last job.

A change of the policy changes these figures: look at them, then write them anew with

    python -m tests.unit.test_sim_golden
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from callsheet.simulator.generate import Stream, Traffic, generate
from callsheet.simulator.measures import measure
from callsheet.simulator.replay import replay
from callsheet.simulator.scenario import Death, Fleet, Model, Scenario, TierSpec

GOLDEN = Path(__file__).with_name("golden_replays.json")

FLEETS = (Fleet("a100", 4, 80.0), Fleet("h100", 2, 80.0), Fleet("l40s", 2, 48.0))
MODELS = (
    Model("m", 38.0, {"a100": 1.0, "h100": 2.0, "l40s": 0.5}, 20.0),
    Model("s", 20.0, {"a100": 1.0, "h100": 1.8, "l40s": 0.65}, 11.0),
    Model("l", 60.0, {"a100": 1.0, "h100": 2.2}, 31.0),
)
TIERS = (TierSpec("pro", 0.9), TierSpec("free", 0.05, longest_wait_s=3600.0))
STREAMS = (Stream("pro", 40, 5.0, 8.0), Stream("free", 90, 1.1))
TRAFFIC = Traffic(span_s=400.0, streams=STREAMS, tenants=20, models=3, names=("m", "s", "l"))
SCENARIOS = {
    "quiet": 900.0,  # the same jobs over more than twice the time
    "full": 400.0,
    "deaths": 400.0,
}


def scenario(name: str) -> Scenario:
    traffic = replace(TRAFFIC, span_s=SCENARIOS[name])
    dying = (Death(60.0, "a100", 2, 45.0), Death(200.0, "h100", 1)) if name == "deaths" else ()
    arrivals = generate(traffic, seed=7)
    return Scenario(name, FLEETS, MODELS, TIERS, arrivals, SCENARIOS[name], deaths=dying)


def told(name: str) -> dict[str, Any]:
    """What a run of it gives, to the millisecond."""
    whole = scenario(name)
    found = measure(whole, replay(whole))
    figures = {
        key: getattr(found, key)
        for key in ("goodput", "loading_share", "wasted_share", "loads", "preemptions", "finished", "crashes")
    }
    waits = {
        f"{tier}_{key}_s": getattr(spread, key)
        for tier, spread in found.wait_s.items()
        for key in ("p50", "p95", "max")
    }
    return {key: round(value, 3) for key, value in {**figures, **waits, "ended_s": found.ended_s}.items()}


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_policy_does_as_it_did(name: str) -> None:
    assert told(name) == json.loads(GOLDEN.read_text())[name]


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({name: told(name) for name in SCENARIOS}, indent=2) + "\n")
