"""The plan of one tick."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callsheet.records.lanes import Desired
from callsheet.routing.estimates import Costs
from callsheet.routing.rebalance import (
    TARGETS_S,
    heirs_of,
    observe,
    rebalance,
    seat_heirs,
)
from callsheet.routing.seats import take_seats
from callsheet.routing.snapshot import Memory, Snapshot, waiting_jobs
from callsheet.routing.tiers import FREE, PRO
from tests.support.snapshots import NOW, carried_out, gpu, job, lane, lanes, seat, snapshot, waiting

SPECS = lanes(lane("wan", vram_gb=60.0), lane("ltx", vram_gb=60.0), lane("cog", vram_gb=60.0))


def fixed(*targets: tuple[str, float]) -> Memory:
    """Targets of A100s that are not due to be made anew."""
    return Memory(at=NOW, targets_at=NOW, targets={"a100": dict(targets)})


def test_an_empty_fleet_without_jobs_has_an_empty_plan() -> None:
    plan = rebalance(snapshot([], specs=SPECS))
    assert (plan.desired, plan.loads, plan.seatings, plan.quotas, plan.routes) == ({}, [], [], {}, {})


def test_only_tiers_that_preempt_have_heirs_and_the_first_stand_first() -> None:
    queued = [
        waiting("pro.a100.wan", 2),
        waiting("free.a100.wan", 2),
        waiting("pro.a100.ltx", 1, key=NOW + 0.5),
    ]
    found = heirs_of(queued, snapshot([], queued, specs=SPECS))
    assert [one.job_id for one in found] == ["pro.a100.wan-0", "pro.a100.ltx-0", "pro.a100.wan-1"]


def test_a_look_that_was_asked_for_seats_as_the_tick_does() -> None:
    picture = snapshot([seat(runs=job())], [waiting("pro.a100.wan", 1)], specs=SPECS)
    assert seat_heirs(picture) == rebalance(picture).seatings != []
    assert seat_heirs(snapshot([seat()], [waiting("free.a100.wan", 1)], specs=SPECS)) == []


def test_a_gpu_that_is_given_to_a_job_loads_nothing_else() -> None:
    queued = [waiting("pro.a100.wan", 1), waiting("free.a100.ltx", 5)]
    plan = rebalance(snapshot([seat()], queued, specs=SPECS))
    assert [one.gpu for one in plan.seatings] == ["a100-0@node"]
    assert plan.loads == []


def test_targets_are_made_anew_when_they_are_due() -> None:
    picture = snapshot([seat(warm=["wan"])], [waiting("free.a100.wan", 9)], specs=SPECS)
    young = Memory(targets_at=NOW - TARGETS_S + 0.1, targets={"a100": {"old": 1.0}})
    assert observe(replace(picture, memory=young)).targets == young.targets
    due = replace(young, targets_at=NOW - TARGETS_S)
    assert observe(replace(picture, memory=due)).targets["a100"]["wan"] == pytest.approx(1.0)


def test_waiting_jobs_are_counted_by_tier() -> None:
    queued = [waiting("free.a100.wan", 2), waiting("free.a100.ltx", 3), waiting("pro.a100.ltx", 1)]
    assert waiting_jobs(snapshot([], queued, specs=SPECS)) == {"free": 5, "pro": 1}


def test_a_gpu_serves_the_queues_of_the_lanes_that_it_holds_and_of_those_it_loads() -> None:
    fleet = [seat(warm=["ltx"], loading="wan")]
    queued = [waiting("pro.l40s.wan", 0), waiting("pro.a100.cog", 1), waiting("free.a100.wan", 1)]
    tiers = (PRO, replace(FREE, share=0.0))
    served = (
        rebalance(snapshot(fleet, queued, specs=SPECS, memory=fixed(), tiers=tiers))
        .desired["a100-0@node"]
        .queues
    )
    assert set(served) == {
        "pro.a100.wan", "pro.l40s.wan", "pro.a100.ltx", "free.a100.wan", "free.a100.ltx"
    }  # fmt: skip
    assert [queue.split(".")[0] for queue in served] == ["pro"] * 3 + ["free"] * 2


def test_the_lane_whose_job_is_oldest_is_served_first() -> None:
    specs = lanes(lane("wan"), lane("ltx"))
    fleet = [seat(warm=["wan", "ltx"])]
    for first, second in (("wan", "ltx"), ("ltx", "wan")):
        queued = [waiting(f"free.a100.{first}", 1, key=NOW - 60), waiting(f"free.a100.{second}", 1)]
        memory = fixed((first, 1.0), (second, 1.0))
        wish = rebalance(snapshot(fleet, queued, specs=specs, memory=memory)).desired["a100-0@node"]
        free = [queue for queue in wish.queues if queue.startswith("free")]
        assert free == [f"free.a100.{first}", f"free.a100.{second}"]


def test_a_lane_that_has_its_gpus_stands_back() -> None:
    specs = lanes(lane("wan"), lane("ltx"))
    fleet = [
        seat(index=0, runs=job(), warm=["wan", "ltx"]),
        seat(index=1, runs=job("b", of="ltx"), warm=["wan"]),
    ]
    queued = [waiting("free.a100.wan", 5, key=NOW - 60), waiting("free.a100.ltx", 5)]
    plan = rebalance(snapshot(fleet, queued, specs=specs, memory=fixed(("wan", 1.0), ("ltx", 2.0))))
    free = [queue for queue in plan.desired["a100-0@node"].queues if queue.startswith("free")]
    assert free == ["free.a100.ltx", "free.a100.wan"]


def test_a_tier_that_is_owed_its_share_is_served_first_by_the_gpus_that_are_soonest_free() -> None:
    fleet = [seat(index=n, runs=job(f"p{n}", tier="pro"), frees_s=60.0 - n) for n in range(20)]
    plan = rebalance(snapshot(fleet, [waiting("free.a100.wan", 5)], specs=SPECS, memory=fixed()))
    turned = [name for name, wish in plan.desired.items() if wish.queues[0].startswith("free")]
    assert turned == ["a100-19@node"]


def test_only_what_changes_is_ordered() -> None:
    picture = snapshot([seat(warm=["wan"]), seat(index=1, warm=["ltx"])], specs=SPECS, memory=fixed())
    plan = rebalance(picture)
    known = replace(picture, desired={"a100-0@node": replace(plan.desired["a100-0@node"], at=5.0)})
    assert set(rebalance(known).desired) == {"a100-1@node"}
    assert rebalance(carried_out(picture, plan)).desired == {}


def test_an_order_to_load_stands_until_it_is_done() -> None:
    wish = Desired(("pro.a100.wan", "free.a100.wan"), keep=(), load="wan", why="wanted", at=NOW - 1.0)
    loading = seat(loading="wan")
    picture = snapshot([loading], specs=SPECS, desired={loading.gpu.name: wish}, memory=fixed())
    assert rebalance(picture).desired == {}
    done = replace(picture, seats=[seat(warm=["wan"])])
    assert rebalance(done).desired["a100-0@node"] == Desired(wish.queues, keep=("wan",))


def test_a_lane_that_nobody_knows_breaks_nothing() -> None:
    queued = [waiting("pro.a100.gone", 1), waiting("free.a100.gone", 9)]
    plan = rebalance(snapshot([seat(runs=job(of="gone2")), seat(index=1)], queued, specs=SPECS))
    assert (plan.loads, plan.seatings) == ([], [])


def test_a_shared_lane_breaks_nothing() -> None:
    plan = rebalance(snapshot([seat(runs=job(of=""))], [waiting("free.a100", 9)], specs=SPECS))
    assert (plan.loads, plan.seatings) == ([], [])


# -- faults that were found -------------------------------------------------------------------------------


def test_weights_that_leave_after_a_job_are_not_counted_as_staying() -> None:
    fleet, wish = [gpu(index=0, warm=["wan"]), gpu(index=1, warm=["wan"])], Desired((), load="cog", at=NOW)
    seats = take_seats(fleet, {"a100-0@node": job()}, [], {"a100-0@node": wish}, SPECS, Costs(), NOW)
    memory = fixed(("wan", 1.0), ("cog", 1.0), ("ltx", 1.0))
    plan = rebalance(Snapshot(NOW, seats, [], SPECS, desired={"a100-0@node": wish}, memory=memory))
    assert [one for one in plan.loads if "wan" in one.evicts] == []


def test_no_second_gpu_loads_for_a_job_that_was_just_given_one() -> None:
    plan = rebalance(snapshot([seat(index=0), seat(index=1)], [waiting("pro.a100.wan", 1)], specs=SPECS))
    assert [one.gpu for one in plan.seatings] == ["a100-0@node"]
    assert plan.loads == []


def test_a_gpu_whose_end_a_pro_job_waits_for_is_not_sent_to_another_lane() -> None:
    specs = lanes(lane("wan"), lane("ltx"))  # there is room for both
    queued = [waiting("pro.a100.wan", 1), waiting("free.a100.ltx", 9)]
    picture = snapshot([seat(runs=job(), frees_s=1.0)], queued, specs=specs, memory=fixed(("ltx", 1.0)))
    assert rebalance(picture).loads == []


def test_an_idle_gpu_loads_for_the_small_jobs_of_a_lane_whose_first_ones_are_large() -> None:
    queued = [waiting("free.a100.wan", 1), waiting("free.l40s.wan", 1)]
    specs = lanes(lane("wan", vram_gb=40.0))
    assert [one.gpu for one in rebalance(snapshot([seat("l40s", 0)], queued, specs=specs)).loads] == [
        "l40s-0@node"
    ]


def test_an_idle_gpu_does_not_load_for_jobs_that_it_could_not_run() -> None:
    queued = [waiting("free.l40s.wan", 0), waiting("free.a100.wan", 3)]
    specs = lanes(lane("wan", vram_gb=40.0))
    assert rebalance(snapshot([seat("l40s", 0)], queued, specs=specs)).loads == []


def test_what_goes_first_stands_last() -> None:
    specs = lanes(lane("wan", vram_gb=20.0), lane("ltx", vram_gb=20.0))
    memory = fixed(("wan", 1.0))
    wish = rebalance(snapshot([seat(warm=["wan", "ltx"])], specs=specs, memory=memory)).desired["a100-0@node"]
    assert wish.keep == ("wan", "ltx")
