"""How many tickets may be out, and where they go."""

from __future__ import annotations

from callsheet.routing.quotas import quotas_of, routes_of
from tests.support.snapshots import job, lane, lanes, seat, snapshot, waiting

SPECS = lanes(lane("wan"), lane("ltx"))
FLEET = [
    seat("a100", 0, warm=["wan"]),
    seat("a100", 1, warm=["wan", "ltx"]),
    seat("h100", 2, warm=["wan"]),
    seat("h100", 3, runs=job()),
    seat("l40s", 4, warm=["wan"]),
]


def test_each_idle_gpu_with_the_weights_has_a_ticket_and_the_backlog_one_more() -> None:
    found = quotas_of(snapshot(FLEET, [waiting("free.a100.wan", 9)], specs=SPECS))
    assert found == {"free.a100.wan": 2 + 1, "free.h100.wan": 1}


def test_a_backlog_that_no_gpu_runs_has_no_ticket() -> None:
    assert quotas_of(snapshot(FLEET, [waiting("pro.h200.wan", 9)], specs=SPECS)) == {}


def test_busy_promised_and_loading_gpus_take_no_ticket() -> None:
    fleet = [
        seat(runs=job()),
        seat(index=1, warm=["wan"], promised=True),
        seat(index=2, warm=["wan"], loading="ltx"),
    ]
    assert quotas_of(snapshot(fleet, [waiting("free.a100.wan", 9)], specs=SPECS)) == {"free.a100.wan": 1}


def test_backlogs_of_one_lane_do_not_take_each_others_spare_ticket() -> None:
    queued = [waiting("free.a100.wan", 9), waiting("free.l40s.wan", 9)]
    there, back = (quotas_of(snapshot(FLEET, rows, specs=SPECS)) for rows in (queued, queued[::-1]))
    assert there == back
    assert there["free.a100.wan"] == 3


def test_a_tier_that_preempts_goes_to_the_fastest_class_first() -> None:
    found = routes_of(snapshot(FLEET, [waiting("pro.l40s.wan", 9)], specs=SPECS))
    assert found == {"pro.l40s.wan": ("pro.h100.wan", "pro.a100.wan", "pro.l40s.wan")}


def test_the_others_go_where_their_work_costs_least() -> None:
    prices = lanes(lane("wan", speed={"a100": 1.0, "h100": 1.5, "l40s": 1.0}))  # 1.00, 1.07 and 0.65 a second
    found = routes_of(snapshot(FLEET, [waiting("free.a100.wan", 9)], specs=prices))
    assert found == {"free.a100.wan": ("free.a100.wan", "free.h100.wan")}
    found = routes_of(snapshot(FLEET, [waiting("free.l40s.wan", 9)], specs=prices))
    assert found == {"free.l40s.wan": ("free.l40s.wan", "free.a100.wan", "free.h100.wan")}


def test_a_route_without_idle_gpus_is_the_backlogs_own_queue() -> None:
    busy = [seat(runs=job())]
    found = routes_of(snapshot(busy, [waiting("free.a100.wan", 9)], specs=SPECS))
    assert found == {"free.a100.wan": ("free.a100.wan",)}


def test_a_lane_that_nobody_knows_keeps_its_own_queue() -> None:
    picture = snapshot(FLEET, [waiting("free.a100.gone", 9)], specs=SPECS)
    assert routes_of(picture) == {"free.a100.gone": ("free.a100.gone",)}
    assert quotas_of(picture) == {}
