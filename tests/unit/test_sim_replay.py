"""Callsheet's own policy on small scenarios, from the first job to the last."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callsheet.simulator.replay import replay
from callsheet.simulator.result import Result
from callsheet.simulator.scenario import Arrival, Death, Fleet, Model, Scenario, TierSpec

MODELS = (Model("m", 20.0, {"a100": 1.0}, 11.0), Model("n", 70.0, {"a100": 1.0}, 20.0))
TIERS = (TierSpec("pro", 0.9), TierSpec("free", 0.05, longest_wait_s=3600.0))


def jobs(count: int, *, tier: str = "free", work_s: float = 20.0, every_s: float = 1.0) -> list[Arrival]:
    return [Arrival(n * every_s, f"t{n % 3}", tier, "m", work_s, 10) for n in range(count)]


def scenario(arrivals: list[Arrival], gpus: int = 2, deaths: tuple[Death, ...] = ()) -> Scenario:
    ordered = tuple(sorted(arrivals, key=lambda arrival: arrival.at_s))
    fleet = (Fleet("a100", gpus, 80.0),)
    return Scenario("small", fleet, MODELS, TIERS, ordered, 100.0, deaths=deaths)


def check_whole(result: Result) -> None:
    assert all(life.ended_at is not None for life in result.lives)
    assert sum(result.gpu_s.values()) == pytest.approx(200.0)
    assert min(result.gpu_s.values()) >= 0.0


def test_every_job_ends_and_the_gpu_seconds_add_up() -> None:
    result = replay(scenario(jobs(12)))
    check_whole(result)
    assert (result.loads, result.preemptions) == (2, 0)


def test_a_pro_job_takes_a_gpu_at_the_next_step_and_no_work_is_lost() -> None:
    pro = Arrival(42.0, "p", "pro", "m", 10.0, 10)
    result = replay(scenario([*jobs(12), pro]))
    check_whole(result)
    life = next(life for life in result.lives if life.arrival is pro)
    assert life.started_at is not None
    assert life.started_at - pro.at_s < 2.0 + 0.1 + 0.1  # one step, one save, what tells of them
    assert (result.preemptions, sum(life.redone_s for life in result.lives)) == (1, 0.0)


def test_equal_scenarios_give_equal_results() -> None:
    first, second = (replay(scenario(jobs(12))) for _ in range(2))
    assert first.lives == second.lives


def test_the_jobs_of_a_gpu_that_dies_go_on_elsewhere() -> None:
    result = replay(scenario(jobs(8), deaths=(Death(25.0, "a100"),)))
    check_whole(result)
    assert sum(life.crashes for life in result.lives) == 1


def test_gpus_that_all_die_and_come_back_end_every_job() -> None:
    result = replay(scenario(jobs(8), deaths=(Death(25.0, "a100", count=2, back_after_s=10.0),)))
    check_whole(result)
    assert sum(life.crashes for life in result.lives) == 2


def test_noise_in_the_estimates_changes_no_work() -> None:
    result = replay(replace(scenario(jobs(12)), noise=0.3))
    check_whole(result)
    assert sum(life.arrival.work_s for life in result.lives) == 240.0


def test_what_would_wait_too_long_is_refused_and_what_is_admitted_starts_in_time() -> None:
    flood = jobs(800, every_s=0.125)  # 16,000 s of work in 100 s, on eight GPUs
    tiers = (TIERS[0], replace(TIERS[1], longest_wait_s=300.0))
    result = replay(replace(scenario(flood, gpus=8), tiers=tiers))
    refused = [life for life in result.lives if life.refused]
    admitted = [life for life in result.lives if not life.refused]
    assert refused
    assert all(life.started_at is None and life.ended_at is None for life in refused)
    assert all(life.ended_at is not None for life in admitted)
    waits = [(life.started_at or 0.0) - life.arrival.at_s for life in admitted]
    assert max(waits) <= 300.0
    assert max(waits) > 200.0  # nothing was refused without need


def test_a_run_within_its_bounds_refuses_nothing() -> None:
    result = replay(scenario(jobs(60, every_s=0.5)))
    assert not any(life.refused for life in result.lives)
