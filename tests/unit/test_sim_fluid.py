"""The fluid, against hand-made cases and the same in steps of time."""

from __future__ import annotations

import random

import pytest

from callsheet.simulator.fluid import fluid, fluid_at
from callsheet.simulator.scenario import Arrival, Fleet, Model, Scenario, Spike, TierSpec

TIERS = ("pro", "free")
STEP_S = 0.25


def job(at_s: float, tier: str, work_s: float) -> Arrival:
    return Arrival(at_s, "t", tier, "m", work_s, 9)


def test_first_come_first_served_in_a_tier() -> None:
    told = fluid_at(2.0, TIERS, [job(0.0, "pro", 8.0), job(1.0, "pro", 2.0), job(10.0, "pro", 1.0)])
    assert told.waits_s["pro"] == (0.0, 3.0, 0.0)


def test_the_first_tier_goes_before_work_that_has_begun() -> None:
    told = fluid_at(1.0, TIERS, [job(0.0, "free", 4.0), job(0.0, "free", 1.0), job(2.0, "pro", 5.0)])
    assert told.waits_s["pro"] == (0.0,)
    assert told.waits_s["free"] == (0.0, 9.0)


def test_a_tier_waits_for_those_before_it() -> None:
    told = fluid_at(1.0, TIERS, [job(0.0, "pro", 5.0), job(1.0, "free", 1.0), job(3.0, "pro", 2.0)])
    assert told.waits_s["free"] == (6.0,)


def test_no_jobs_of_a_tier() -> None:
    told = fluid_at(1.0, TIERS, [job(0.0, "pro", 5.0)])
    assert told.waits_s["free"] == ()


def random_jobs(rate: float, seed: int, count: int) -> list[Arrival]:
    """Jobs that arrive and end at multiples of ``STEP_S`` when served at ``rate``: steps are exact."""
    rng = random.Random(seed)
    times = sorted(rng.randrange(300) * STEP_S for _ in range(count))
    return [job(at_s, rng.choice(TIERS), rng.randint(1, 3) * rate * STEP_S) for at_s in times]


def stepped(rate: float, jobs: list[Arrival]) -> dict[str, list[float]]:
    """The same in steps of time: a job has begun when more is served than what was ahead of it."""
    arrived = dict.fromkeys(TIERS, 0.0)
    served = dict.fromkeys(TIERS, 0.0)
    ahead: list[float] = []
    waits: list[float | None] = []
    step = 0
    while len(waits) < len(jobs) or None in waits:
        now_s = step * STEP_S
        while len(ahead) < len(jobs) and jobs[len(ahead)].at_s <= now_s:
            arrival = jobs[len(ahead)]
            ahead.append(arrived[arrival.tier])
            arrived[arrival.tier] += arrival.work_s
            waits.append(None)
        left = rate * STEP_S
        for tier in TIERS:
            part = min(left, arrived[tier] - served[tier])
            served[tier] += part
            left -= part
        for place, arrival in enumerate(jobs[: len(waits)]):
            if waits[place] is None and served[arrival.tier] > ahead[place]:
                waits[place] = now_s - arrival.at_s
        step += 1
    return {
        tier: [wait for wait, each in zip(waits, jobs, strict=True) if each.tier == tier and wait is not None]
        for tier in TIERS
    }


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rate", [1.0, 280.0])
@pytest.mark.parametrize("count", [120, 250])  # under and over what is served while they arrive
def test_it_agrees_with_steps(rate: float, seed: int, count: int) -> None:
    jobs = random_jobs(rate, seed, count)
    told = fluid_at(rate, TIERS, jobs)
    assert {tier: list(waits) for tier, waits in told.waits_s.items()} == stepped(rate, jobs)


def test_drain_is_the_time_back_to_the_level_before() -> None:
    jobs = [job(0.0, "pro", 12.0), job(5.0, "free", 6.0), job(9.0, "pro", 2.0)]
    told = fluid_at(1.0, TIERS, jobs)
    # Level 8 before 4 s; 12 at 6 s, 9 before and 11 after the job at 9 s, 8 at 12 s.
    assert told.drain_s(Spike(2.0, 4.0, 2.0)) == pytest.approx(6.0)


def test_drain_is_nothing_when_never_above() -> None:
    told = fluid_at(1.0, TIERS, [job(0.0, "pro", 12.0), job(5.0, "free", 1.0), job(30.0, "pro", 1.0)])
    assert told.drain_s(Spike(2.0, 4.0, 4.0)) == 0.0


def test_drain_takes_the_first_moment() -> None:
    told = fluid_at(1.0, TIERS, [job(1.0, "pro", 4.0), job(50.0, "pro", 9.0)])
    assert told.drain_s(Spike(2.0, 0.0, 2.0)) == pytest.approx(3.0)


def test_a_scenario_is_served_at_its_capacity() -> None:
    scenario = Scenario(
        name="s",
        fleets=(Fleet("a100", 3, 80.0),),
        models=(Model("m", 20.0, {"a100": 2.0}, 11.0),),
        tiers=(TierSpec("pro"), TierSpec("free")),
        arrivals=(job(0.0, "pro", 12.0), job(0.0, "free", 6.0)),
        window_s=10.0,
    )
    told = fluid(scenario)
    assert told.capacity == pytest.approx(6.0)
    assert list(told.waits_s) == ["pro", "free"]
    assert told.waits_s["free"] == pytest.approx((2.0,))
