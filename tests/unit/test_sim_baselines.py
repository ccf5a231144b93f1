"""The ways in which plain Celery shares a fleet, simulated."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest

from callsheet.errors import SettingsError
from callsheet.simulator.baseline_plans import divide
from callsheet.simulator.baselines import BASELINES, run_baseline
from callsheet.simulator.result import Result
from callsheet.simulator.scenario import Arrival, Death, Fleet, Model, Scenario, TierSpec

SMALL = Model("small", 30.0, {"a100": 1.0, "h100": 2.0, "l40s": 0.5}, load_s=10.0)
OTHER = Model("other", 30.0, {"a100": 1.0, "h100": 2.0, "l40s": 0.5}, load_s=10.0)
LARGE = Model("large", 60.0, {"a100": 1.0, "h100": 2.0, "l40s": 0.5}, load_s=20.0)
A100 = Fleet("a100", 1, 80.0)
L40S = Fleet("l40s", 1, 48.0)
TIERS = (TierSpec("pro", 0.5), TierSpec("free", 0.5))


def job(at_s: float, tier: str = "free", model: str = "small", work_s: float = 100.0) -> Arrival:
    return Arrival(at_s, "tenant", tier, model, work_s, steps=10)


def scenario(
    *arrivals: Arrival,
    fleets: tuple[Fleet, ...] = (A100,),
    window_s: float = 1000.0,
    deaths: tuple[Death, ...] = (),
) -> Scenario:
    return Scenario("test", fleets, (SMALL, OTHER, LARGE), TIERS, arrivals, window_s, deaths=deaths)


def starts(result: Result) -> list[float | None]:
    return [life.started_at for life in result.lives]


def ends(result: Result) -> list[float | None]:
    return [life.ended_at for life in result.lives]


def test_weights_load_once_and_loading_is_wait() -> None:
    result = run_baseline("fifo", scenario(job(0.0), job(5.0)))
    assert starts(result) == [10.0, 110.0]
    assert ends(result) == [110.0, 210.0]
    assert result.loads == 1
    assert result.gpu_s == {"useful": 200.0, "loading": 10.0, "wasted": 0.0, "idle": 790.0}


def test_a_faster_gpu_takes_less_time() -> None:
    result = run_baseline("fifo", scenario(job(0.0), fleets=(Fleet("h100", 1, 80.0),)))
    assert ends(result) == [60.0]
    assert result.lives[0].done_s == 100.0
    assert result.gpu_s["useful"] == 50.0


def test_the_least_recently_used_weights_leave() -> None:
    jobs = [job(float(at), model=model) for at, model in enumerate(["small", "other", "small", "large"])]
    result = run_baseline("fifo", scenario(*jobs, job(4.0, model="small"), window_s=2000.0))
    assert result.loads == 4  # large leaves no room for either, small comes again
    assert starts(result) == [10.0, 120.0, 220.0, 340.0, 450.0]


def test_weights_that_fit_beside_stay() -> None:
    jobs = [job(float(at), model=model) for at, model in enumerate(["small", "other", "small", "other"])]
    assert run_baseline("fifo", scenario(*jobs)).loads == 2


def test_fifo_knows_no_tiers() -> None:
    result = run_baseline("fifo", scenario(job(0.0), job(1.0), job(2.0, "pro")))
    assert starts(result) == [10.0, 110.0, 210.0]


def test_two_queues_serve_the_first_tier_first_and_interrupt_nothing() -> None:
    result = run_baseline("two-queues", scenario(job(0.0), job(1.0), job(2.0, "pro")))
    assert starts(result) == [10.0, 210.0, 110.0]
    assert result.preemptions == 0


def test_a_job_that_does_not_fit_is_passed_over() -> None:
    a100 = job(0.0, model="large")
    result = run_baseline("fifo", scenario(a100, job(1.0, model="large"), job(2.0), fleets=(A100, L40S)))
    assert starts(result) == [20.0, 120.0, 12.0]


def test_restart_kills_the_job_that_ran_shortest_and_its_work_is_lost() -> None:
    jobs = (job(0.0), job(30.0), job(60.0, "pro"))
    result = run_baseline("restart", scenario(*jobs, fleets=(Fleet("a100", 2, 80.0),)))
    first, second, pro = result.lives
    assert (first.preemptions, second.preemptions, result.preemptions) == (0, 1, 1)
    assert pro.started_at == 70.0  # the killed process took its weights along
    assert second.started_at == 40.0
    assert second.ended_at == 210.0  # on the GPU of the first, from the beginning
    assert second.redone_s == 20.0
    assert second.done_s == 100.0
    assert result.gpu_s == {"useful": 300.0, "loading": 30.0, "wasted": 20.0, "idle": 1650.0}


def test_restart_kills_no_job_of_the_first_tier() -> None:
    result = run_baseline("restart", scenario(job(0.0, "pro"), job(1.0, "pro")))
    assert starts(result) == [10.0, 110.0]
    assert result.preemptions == 0


def test_a_killed_job_goes_to_the_front_of_its_queue() -> None:
    result = run_baseline("restart", scenario(job(0.0), job(1.0), job(2.0, "pro")))
    assert ends(result) == [212.0, 312.0, 112.0]
    assert result.loads == 2  # the first was killed while it loaded


def test_a_killed_job_takes_an_idle_gpu_that_the_killer_cannot_use() -> None:
    quick = job(0.0, work_s=20.0)
    jobs = (quick, job(1.0, work_s=30.0), job(60.0), job(61.0, "pro", "large"))
    made = [replace(scenario(*jobs, fleets=(A100, L40S)), seed=seed) for seed in range(8)]
    killed = [one for one in (run_baseline("restart", each) for each in made) if one.preemptions]
    assert killed
    assert all(one.lives[2].ended_at in (261.0, 271.0) for one in killed)


def test_static_keeps_to_its_part() -> None:
    jobs = [job(float(at)) for at in range(3)]
    result = run_baseline("static", scenario(*jobs, fleets=(Fleet("a100", 2, 80.0),)))
    assert starts(result) == [10.0, 110.0, 210.0]


def test_static_gives_every_tier_with_jobs_a_gpu_that_fits_them() -> None:
    tiers = (TierSpec("pro", 0.05), TierSpec("free", 0.95))
    fleets = (Fleet("a100", 3, 80.0), Fleet("l40s", 5, 48.0))
    made = scenario(job(0.0, "pro", "large"), job(0.0, "free", "large"), fleets=fleets)
    assert starts(run_baseline("static", replace(made, tiers=tiers))) == [20.0, 20.0]


def test_static_needs_a_gpu_per_tier() -> None:
    with pytest.raises(SettingsError, match="static baseline finds no GPU for tier 'free'"):
        run_baseline("static", scenario(job(0.0, "pro"), job(1.0)))


def test_shares_divide_into_whole_gpus() -> None:
    assert divide(10, [0.5, 0.3, 0.2]) == [5, 3, 2]
    assert divide(3, [1.0, 1.0]) == [2, 1]
    assert divide(7, [0.1, 0.9]) == [1, 6]


def test_a_dead_gpus_job_waits_for_the_lease_and_begins_again() -> None:
    death = Death(50.0, "a100", back_after_s=30.0)
    result = run_baseline("fifo", scenario(job(0.0), deaths=(death,)))
    life = result.lives[0]
    assert life.ended_at == 190.0  # back at 80 with an empty memory
    assert (life.crashes, life.redone_s, life.done_s, life.started_at) == (1, 40.0, 100.0, 10.0)
    assert result.gpu_s == {"useful": 100.0, "loading": 20.0, "wasted": 40.0, "idle": 840.0}


def test_another_gpu_takes_over_after_the_lease() -> None:
    fleets = (A100, Fleet("h100", 1, 80.0))
    jobs = (job(0.0, work_s=60.0), job(0.0, work_s=60.0))  # the h100 is idle from 40 on
    result = run_baseline("fifo", scenario(*jobs, fleets=fleets, deaths=(Death(50.0, "a100"),)))
    assert sorted(end or 0.0 for end in ends(result)) == [40.0, 83.0]


def test_a_fleet_that_dies_for_good_is_told() -> None:
    with pytest.raises(SettingsError, match="1 jobs wait for GPUs that have died"):
        run_baseline("fifo", scenario(job(0.0), deaths=(Death(50.0, "a100"),)))


def test_only_the_window_counts_but_every_job_ends() -> None:
    result = run_baseline("fifo", scenario(job(0.0), job(50.0), job(51.0), window_s=160.0))
    assert [life.done_s for life in result.lives] == [100.0, 50.0, 0.0]
    assert result.gpu_s == {"useful": 150.0, "loading": 10.0, "wasted": 0.0, "idle": 0.0}
    assert result.ended_s == 310.0


def test_samples_tell_what_gpus_do() -> None:
    result = run_baseline("two-queues", scenario(job(0.0), job(1.0, "pro"), job(2.0)))
    assert len(result.samples) == 201
    assert result.samples[-1].at_s == 1000.0
    early = next(sample for sample in result.samples if sample.at_s == 5.0)
    assert (early.loading, early.useful, early.waiting) == (1, 0, {"pro": 1, "free": 1})
    later = next(sample for sample in result.samples if sample.at_s == 150.0)
    assert (later.useful, later.waiting) == (1, {"pro": 0, "free": 1})
    assert later.lanes == {"small": 1, "other": 0, "large": 0}


@pytest.mark.parametrize(
    ("arrival", "said"),
    [
        (job(0.0, model="unknown"), "does not describe"),
        (job(0.0, model="large"), "fit no GPU"),
        (job(0.0, tier="unknown"), "scenario's tiers are pro, free"),
    ],
)
def test_traffic_that_cannot_be_served(arrival: Arrival, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        run_baseline("fifo", scenario(arrival, fleets=(L40S,)))


def test_an_unknown_baseline() -> None:
    with pytest.raises(SettingsError, match=r"no baseline 'x'\. Choose one of fifo, two-queues"):
        run_baseline("x", scenario())


def busy(count: int) -> Scenario:
    chance = random.Random(1)
    tiers, models = ("pro", "free", "free"), ("small", "other", "large")
    jobs = [
        job(
            chance.uniform(0.0, 1000.0),
            chance.choice(tiers),
            chance.choice(models),
            chance.uniform(5.0, 90.0),
        )
        for _ in range(count)
    ]
    fleets = (Fleet("a100", 20, 80.0), Fleet("h100", 10, 80.0), Fleet("l40s", 10, 48.0))
    deaths = (Death(300.0, "a100", 5, 100.0), Death(500.0, "l40s", 3), Death(505.0, "a100", 30, 9.0))
    return scenario(*jobs, fleets=fleets, deaths=deaths)


@pytest.mark.parametrize("name", BASELINES)
def test_sums_agree_and_runs_repeat(name: str) -> None:
    traffic = busy(1500)
    result = run_baseline(name, traffic)
    assert [life.arrival for life in result.lives] == list(traffic.arrivals)
    assert sum(result.gpu_s.values()) == pytest.approx(40 * 1000.0)
    assert min(result.gpu_s.values()) >= -1e-6
    assert all(life.ended_at is not None for life in result.lives)
    within = [life for life in result.lives if (life.ended_at or 0.0) <= 1000.0]
    assert all(life.done_s == pytest.approx(life.arrival.work_s) for life in within)
    assert all(sample.useful + sample.loading + sample.idle == 40 for sample in result.samples)
    assert run_baseline(name, traffic) == result


def test_a_long_queue_costs_no_time() -> None:
    jobs = [job(0.0, model="large", work_s=1.0) for _ in range(8000)]
    jobs += [job(0.0, work_s=1.0) for _ in range(2000)]
    begin = time.process_time()
    run_baseline("fifo", scenario(*jobs, fleets=(A100, L40S)))
    assert time.process_time() - begin < 2.0
