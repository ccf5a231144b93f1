"""What a waiting job has to expect."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callsheet.records.jobs import Job
from callsheet.records.states import State
from callsheet.routing.outlook import ONE_BY_ONE, fits, outlook, servers
from callsheet.routing.tiers import FREE, PRO
from tests.support.snapshots import job, lane, seat

SPEC = lane("wan", load_s=10.0)
TIERS = {"pro": PRO, "free": FREE}


def waits(tier: str = "free", need: str = "a100", need_gib: float = 1.0) -> Job:
    return replace(job("film", tier=tier, need=need), state=State.PENDING, need_gib=need_gib)


def test_each_class_says_what_it_lacks() -> None:
    fleet = [seat(warm=["wan"]), seat(index=1), seat("l40s"), seat("t4")]
    told = {one.gpu_class: one for one in fits(waits(), fleet, SPEC)}
    assert (told["a100"].gpus, told["a100"].warm, told["a100"].lacks) == (2, 1, "")
    assert told["l40s"].lacks == "less than class a100, which the job was placed on"
    assert told["t4"].lacks == "its model does not run on this class"
    big = {one.gpu_class: one.lacks for one in fits(waits(need_gib=60.0), fleet, SPEC)}
    assert big["l40s"] == "memory: the job needs 60.0 GiB, 44.5 are usable"
    assert big["a100"] == ""


def test_the_class_it_was_placed_on_is_told_though_nobody_has_it() -> None:
    (told,) = fits(waits(), [], SPEC)
    assert (told.gpu_class, told.gpus, told.lacks) == ("a100", 0, "")
    assert "nothing is known of lane wan" in fits(waits(), [], None)[0].lacks


def test_servers_have_the_weights_or_load_them_and_can_run_it() -> None:
    fleet = [
        seat(index=0, runs=job(), frees_s=50.0),
        seat(index=1, runs=job("b"), frees_s=5.0),
        seat(index=2, warm=["wan"]),
        seat(index=3, loading="wan", frees_s=8.0),
        seat("l40s", index=4, warm=["wan"]),
        seat(index=5, warm=["ltx"]),
    ]
    names = [one.gpu.name for one in servers(waits(), fleet, SPEC)]
    assert names == [f"a100-{n}@node" for n in (2, 1, 3, 0)]


def test_it_starts_when_the_first_gpu_is_free_after_those_before_it() -> None:
    fleet = [seat(index=0, runs=job(), frees_s=50.0), seat(index=1, runs=job("b"), frees_s=5.0)]
    assert outlook(waits(), fleet, SPEC, TIERS, jobs=0, work_s=0.0).wait_s == 5.0
    assert outlook(waits(), fleet, SPEC, TIERS, jobs=1, work_s=20.0).wait_s == 25.0
    told = outlook(waits(), fleet, SPEC, TIERS, jobs=3, work_s=60.0)
    assert told.wait_s == 50.0  # 5 -> 25 -> 45 -> 65 there
    assert told.reason == "from when GPUs are free (2 with its weights) and 60 s of work before it"


def test_a_fast_gpu_is_free_sooner() -> None:
    fleet = [seat("h100", runs=job(), frees_s=5.0)]
    assert outlook(waits(), fleet, SPEC, TIERS, jobs=1, work_s=20.0).wait_s == 15.0


def test_many_jobs_before_it_flow_like_water() -> None:
    fleet = [seat(index=n, runs=job(f"j{n}"), frees_s=10.0) for n in range(2)]
    few, many = (
        outlook(waits(), fleet, SPEC, TIERS, jobs=jobs, work_s=10.0 * jobs).wait_s
        for jobs in (ONE_BY_ONE, ONE_BY_ONE + 1)
    )
    assert few is not None
    assert many == pytest.approx(few, rel=0.001)


def test_without_warm_gpus_it_counts_the_load() -> None:
    told = outlook(waits(), [seat(), seat(index=1, runs=job(of="ltx"))], SPEC, TIERS, jobs=0, work_s=0.0)
    assert told.wait_s == 10.0
    assert "(2 that could load them in 10 s)" in told.reason


def test_an_idle_gpu_that_loads_may_be_sooner_than_a_warm_one() -> None:
    fleet = [seat(runs=job(), frees_s=60.0), seat(index=1), seat(index=2, runs=job(of="ltx"), frees_s=1.0)]
    told = outlook(waits(), fleet, SPEC, TIERS, jobs=0, work_s=0.0)
    assert told.wait_s == 10.0
    assert "(1 with its weights, 1 that could load them in 10 s)" in told.reason


def test_a_tier_that_preempts_counts_on_who_may_yield() -> None:
    fleet = [seat(runs=job(), frees_s=60.0, yields_s=2.0)]
    assert outlook(waits("pro"), fleet, SPEC, TIERS, jobs=0, work_s=0.0).wait_s == 2.0
    assert outlook(waits("free"), fleet, SPEC, TIERS, jobs=0, work_s=0.0).wait_s == 60.0


def test_nothing_is_said_where_nobody_can_run_it() -> None:
    assert outlook(waits(), [seat("l40s")], SPEC, TIERS, jobs=0, work_s=0.0).wait_s is None
    assert outlook(waits(), [seat()], None, TIERS, jobs=0, work_s=0.0).wait_s is None
