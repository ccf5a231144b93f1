"""How each baseline divides jobs among queues, and GPUs among tiers."""

from __future__ import annotations

from dataclasses import dataclass

from callsheet.errors import SettingsError
from callsheet.simulator.baseline_jobs import Job, lane_for, lanes_of
from callsheet.simulator.result import Life
from callsheet.simulator.scenario import Scenario

#: What ``run_baseline`` knows.
BASELINES = ("fifo", "two-queues", "static", "restart")

Needs = list[set[tuple[int, ...]]]  # for each tier the sets of fleets of which its jobs need one


@dataclass(frozen=True, slots=True)
class Plan:
    """A baseline on a scenario."""

    queues: tuple[int, ...]  # place of a tier -> its queue
    pools: tuple[int, ...]  # place of a tier -> its pool of GPUs
    serves: tuple[tuple[int, ...], ...]  # pool -> queues that its GPUs serve, in order
    kills: bool = False  # the first tier kills


def plan_for(name: str, tiers: int) -> Plan:
    """The plan of a baseline for so many tiers. Raises SettingsError on an unknown name."""
    if name not in BASELINES:
        raise SettingsError(f"There is no baseline {name!r}. Choose one of {', '.join(BASELINES)}.")
    each = tuple(range(tiers))
    if name == "fifo":
        return Plan((0,) * tiers, (0,) * tiers, ((0,),))
    if name == "static":
        return Plan(each, each, tuple((rank,) for rank in each))
    return Plan(each, (0,) * tiers, (each,), kills=name == "restart")


def jobs_for(scenario: Scenario, plan: Plan, lives: list[Life]) -> list[Job]:
    """A job for each life. Raises SettingsError when a tier or a model is unknown, or a job fits no GPU."""
    lanes = lanes_of(scenario)
    ranks = {tier.name: rank for rank, tier in enumerate(scenario.tiers)}
    jobs = []
    for life in lives:
        rank = ranks.get(life.arrival.tier)
        if rank is None:
            raise SettingsError(
                f"The traffic has jobs of tier {life.arrival.tier!r}, but the scenario's tiers are "
                f"{', '.join(ranks) or 'none'}. Add the tier, or take its jobs out of the traffic."
            )
        lane = lane_for(life.arrival, lanes)
        jobs.append(Job(life, lane, rank, plan.queues[rank], plan.pools[rank]))
    return jobs


def parts_for(scenario: Scenario, plan: Plan, jobs: list[Job]) -> list[list[int]]:
    """GPUs of each pool by fleet. Raises SettingsError when the fleet is too small to be divided."""
    if len(plan.serves) == 1:
        return [[fleet.count for fleet in scenario.fleets]]
    parts = _by_share(scenario)
    needs: Needs = [set() for _ in parts]
    for job in jobs:
        needs[job.pool].add(job.lane.fits)
    for pool, sets in enumerate(needs):
        for fits in sorted(sets):
            if not _meets(parts[pool], fits) and not _lend(parts, needs, pool, fits):
                raise SettingsError(
                    f"The static baseline finds no GPU for tier {scenario.tiers[pool].name!r}: each tier "
                    f"with jobs needs one of its own that fits them. Add GPUs, or leave this baseline out."
                )
    return parts


def divide(count: int, weights: list[float]) -> list[int]:
    """Whole parts of a count in proportion to weights; the largest remainders are rounded up."""
    exact = [count * weight / sum(weights) for weight in weights]
    parts = [int(one) for one in exact]
    order = sorted(range(len(parts)), key=lambda place: parts[place] - exact[place])
    for place in order[: count - sum(parts)]:
        parts[place] += 1
    return parts


def _by_share(scenario: Scenario) -> list[list[int]]:
    weights = [tier.share for tier in scenario.tiers]
    if not sum(weights):
        weights = [1.0] * len(weights)
    by_fleet = [divide(fleet.count, weights) for fleet in scenario.fleets]
    return [list(part) for part in zip(*by_fleet, strict=True)]


def _meets(part: list[int], fits: tuple[int, ...]) -> bool:
    return any(part[fleet] for fleet in fits)


def _lend(parts: list[list[int]], needs: Needs, pool: int, fits: tuple[int, ...]) -> bool:
    """One GPU from the tier that has most of them and can do without; False when none can."""
    offers = [
        (part[fleet], giver, fleet)
        for giver, part in enumerate(parts)
        for fleet in fits
        if giver != pool and part[fleet] and _can_spare(part, needs[giver], fleet)
    ]
    if not offers:
        return False
    _, giver, fleet = max(offers)
    parts[giver][fleet] -= 1
    parts[pool][fleet] += 1
    return True


def _can_spare(part: list[int], sets: set[tuple[int, ...]], fleet: int) -> bool:
    """Without one GPU of a fleet every need that is met stays met."""
    rest = [count - (place == fleet) for place, count in enumerate(part)]
    return all(_meets(rest, fits) for fits in sets if _meets(part, fits))
