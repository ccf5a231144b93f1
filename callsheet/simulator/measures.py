"""Sums up a run: what it made of the fleet, how long jobs waited, how fair it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from callsheet.simulator.capacity import work_by_model
from callsheet.simulator.drain import drain_s
from callsheet.simulator.fairness import jain, parts_of
from callsheet.simulator.fluid import Fluid, fluid
from callsheet.simulator.result import Life, Result
from callsheet.simulator.scenario import Scenario
from callsheet.simulator.spread import Spread, spread


@dataclass(frozen=True, slots=True)
class Measures:
    """One policy on one scenario. Work is in seconds of the reference GPU."""

    policy: str
    goodput: float  # useful work inside the window, over what could be done: min(offered, capacity x window)
    fluid_goodput: float  # the same of the traffic as a fluid: no policy reaches more
    useful_share: float  # of all GPU time inside the window; the four add up to 1
    loading_share: float
    wasted_share: float
    idle_share: float
    loads: int  # of weights, inside the window
    preemptions: int  # inside the window
    max_preemptions: int  # of one job
    moved_queues: int  # changes of subscriptions inside the window
    wait_s: Mapping[str, Spread]  # tier -> from arrival to first start
    turnaround_s: Mapping[str, Spread]  # tier -> from arrival to end
    fluid_wait_s: Mapping[str, Spread]  # tier -> of the same traffic as a fluid, see fluid.py
    drain_s: float | None  # the longest over the spikes; None without one, or when one never drains
    fluid_drain_s: float | None  # the same of the fluid
    jain: float | None  # the worst over tiers; None when no tier has two tenants that always have work
    jain_by_tier: Mapping[str, float | None]
    jain_tenants: Mapping[str, int]  # tier -> tenants that always have work
    jobs: int
    finished: int
    refused: int
    crashes: int
    offered_s: float  # work of all jobs, refused ones, too
    done_s: float  # useful work inside the window
    redone_s: float  # work done again
    capacity: float  # seconds of work per second that the fleet can do of that mix
    ended_s: float  # when the last job ended
    took_s: float  # wall time of the simulation


def measure(scenario: Scenario, result: Result) -> Measures:
    """The measures of a run of ``scenario``. Raises SettingsError for traffic that holds no work."""
    lives, flow = result.lives, fluid(scenario)
    offered_s = sum(work_by_model(scenario.arrivals).values())
    done_s = sum(life.done_s for life in lives)
    doable_s = min(offered_s, flow.capacity * scenario.window_s)
    tiers = [tier.name for tier in scenario.tiers]
    parts = parts_of(lives, scenario.window_s)
    fair = {tier: jain(list(parts.get(tier, {}).values())) for tier in tiers}
    return Measures(
        policy=result.policy,
        goodput=done_s / doable_s,
        fluid_goodput=flow.done_s(scenario.window_s) / doable_s,
        **_shares(scenario, result),
        loads=result.loads,
        preemptions=result.preemptions,
        max_preemptions=max((life.preemptions for life in lives), default=0),
        moved_queues=result.moved_queues,
        wait_s=_spreads(tiers, lives, lambda life: life.started_at),
        turnaround_s=_spreads(tiers, lives, lambda life: life.ended_at),
        fluid_wait_s={tier: spread(flow.waits_s[tier]) for tier in tiers},
        drain_s=_drain_s(scenario, lives),
        fluid_drain_s=_fluid_drain_s(scenario, flow),
        jain=min((index for index in fair.values() if index is not None), default=None),
        jain_by_tier=fair,
        jain_tenants={tier: len(parts.get(tier, {})) for tier in tiers},
        jobs=len(lives),
        finished=sum(life.ended_at is not None and not life.failed for life in lives),
        refused=sum(life.refused for life in lives),
        crashes=sum(life.crashes for life in lives),
        offered_s=offered_s,
        done_s=done_s,
        redone_s=sum(life.redone_s for life in lives),
        capacity=flow.capacity,
        ended_s=result.ended_s,
        took_s=result.took_s,
    )


def gpus_of(scenario: Scenario) -> int:
    """How many GPUs there are."""
    return sum(fleet.count for fleet in scenario.fleets)


def _shares(scenario: Scenario, result: Result) -> dict[str, float]:
    whole_s = gpus_of(scenario) * scenario.window_s
    kinds = ("useful", "loading", "wasted", "idle")
    return {f"{kind}_share": result.gpu_s.get(kind, 0.0) / whole_s for kind in kinds}


def _spreads(
    tiers: list[str], lives: list[Life], moment: Callable[[Life], float | None]
) -> dict[str, Spread]:
    """Of the seconds from arrival to a moment, over the jobs of each tier for which it came."""
    seconds: dict[str, list[float]] = {tier: [] for tier in tiers}
    for life in lives:
        at = moment(life)
        if at is not None:
            seconds[life.arrival.tier].append(at - life.arrival.at_s)
    return {tier: spread(values) for tier, values in seconds.items()}


def _drain_s(scenario: Scenario, lives: list[Life]) -> float | None:
    """The longest; None as soon as one never drains."""
    found = [drain_s(spike, lives, scenario.window_s) for spike in scenario.spikes]
    known = [seconds for seconds in found if seconds is not None]
    return max(known) if known and len(known) == len(found) else None


def _fluid_drain_s(scenario: Scenario, flow: Fluid) -> float | None:
    return max((flow.drain_s(spike) for spike in scenario.spikes), default=None)
