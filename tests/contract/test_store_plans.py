"""Contract of plans, and of places in line: what explains a job's wait, and what shortens it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from callsheet.records.lanes import Before, Turn
from callsheet.store import rules
from callsheet.store.protocol import Store
from tests.support.clock import Clock
from tests.support.jobs import QUEUE, new_job, op


def submit(store: Store, job_id: str, *, tenant: str = "a", queue: str = QUEUE, **changes: Any) -> None:
    tier = queue.partition(".")[0]
    store.submit(replace(new_job(job_id, queue=queue, tenant=tenant, tier=tier), **changes), op=op())


def test_plans_are_kept_in_order_with_their_time(store: Store, clock: Clock) -> None:
    assert store.plans() == []
    first = clock.now
    store.keep_plan({"decisions": [{"kind": "load", "gpus": ["a"]}]}, op=op())
    clock.advance(5)
    store.keep_plan({"decisions": []}, op=op())
    assert store.plans() == [
        {"at": first, "decisions": [{"kind": "load", "gpus": ["a"]}]},
        {"at": first + 5, "decisions": []},
    ]


def test_a_plan_said_twice_is_kept_once(store: Store) -> None:
    for _ in range(2):
        store.keep_plan({"n": 1}, op="same")
    assert [plan["n"] for plan in store.plans()] == [1]


def test_old_plans_and_those_beyond_the_bound_are_forgotten(store: Store, clock: Clock) -> None:
    for number in range(rules.PLANS_MAX + 3):
        store.keep_plan({"n": number}, op=op())
    assert [plan["n"] for plan in store.plans()] == list(range(3, rules.PLANS_MAX + 3))
    clock.advance(rules.PLANS_TTL_S - 1)
    store.keep_plan({"n": "late"}, op=op())
    clock.advance(1)
    assert [plan["n"] for plan in store.plans()] == ["late"]


def test_a_changed_answer_changes_no_plan(store: Store) -> None:
    given = {"decisions": ["a"]}
    store.keep_plan(given, op=op())
    given["decisions"].append("b")
    store.plans()[0]["decisions"].append("c")
    assert store.plans()[0]["decisions"] == ["a"]


def test_a_tenants_turn_moves_on_with_its_jobs_and_the_tiers_with_turns_taken(
    store: Store, clock: Clock
) -> None:
    assert store.turn("free", "a/b") == Turn(clock.now, clock.now)
    for number in range(2):
        submit(store, f"j{number}", tenant="a/b", charge_s=30.0)
    turn = store.turn("free", "a/b")
    assert turn.now == clock.now
    assert turn.ahead_s == pytest.approx(60.0, abs=0.001)
    assert store.turn("free", "other").ahead_s == store.turn("pro", "a/b").ahead_s == 0.0
    store.set_quotas({QUEUE: 2}, op=op())
    store.release(QUEUE, op=op())
    assert store.turn("free", "other").now == pytest.approx(clock.now + 30.0, abs=0.001)


def test_what_stands_before_a_place_is_told_by_backlog_of_the_tier(store: Store) -> None:
    for number in range(4):
        submit(store, f"h{number}", work_s=10.0)
    submit(store, "l", queue="free.l40s.wan", work_s=7.0)
    submit(store, "p", queue="pro.h100", work_s=5.0)
    place = store.get("h2").start_tag
    assert store.before("free", place) == {QUEUE: Before(2, 20.0)}
    assert store.before("free", store.get("h0").start_tag) == {}
    assert store.before("free", place + 60.0) == {QUEUE: Before(4, 40.0), "free.l40s.wan": Before(1, 7.0)}
    assert store.before("pro", place + 60.0) == {"pro.h100": Before(1, 5.0)}


def test_a_backlog_that_only_got_jobs_from_others_is_told_too(store: Store) -> None:
    submit(store, "film", work_s=10.0)
    store.reroute("film", gpu_class="a100", queue="free.a100", op=op())
    assert store.before("free", store.get("film").start_tag + 1) == {"free.a100": Before(1, 10.0)}


def test_a_key_finds_its_job(store: Store) -> None:
    store.submit(new_job("film", tenant="a", idempotency_key="k"), op=op())
    assert (store.keyed("a", "k"), store.keyed("b", "k"), store.keyed("a", "other")) == ("film", "", "")


def test_a_job_that_waited_long_stands_by_its_age_alone(store: Store, clock: Clock) -> None:
    for number in range(2):
        submit(store, f"many-{number}", tenant="many", charge_s=500.0)
    submit(store, "long", tenant="b", delay_s=300.0)
    clock.advance(60.1)
    submit(store, "young", tenant="c")
    assert store.backlog_jobs(QUEUE) == ["many-0", "young", "long", "many-1"]
    assert store.hasten({"free": 61.0}, op=op()) == []
    assert store.hasten({"pro": 1.0}, op=op()) == store.hasten({}, op=op()) == []
    assert store.hasten({"free": 60.0}, op=op()) == ["many-1", "long"]
    assert store.backlog_jobs(QUEUE) == ["many-0", "many-1", "long", "young"]
    assert store.hasten({"free": 60.0}, op=op()) == []
    job = store.get("many-1")
    assert job.start_tag == job.fair_tag == job.created_at
    told = store.events("many-1")[-1]
    assert (told.kind, told.reason) == ("hastened", rules.HASTENED % 60)


def test_a_hastened_job_moves_no_virtual_time_and_keeps_its_work(store: Store, clock: Clock) -> None:
    for number in range(2):
        submit(store, f"many-{number}", tenant="many", charge_s=500.0, work_s=7.0)
    clock.advance(60.1)
    store.hasten({"free": 60.0}, op=op())
    (told,) = store.lanes()
    assert (told.jobs, told.work_s) == (2, 14.0)
    store.set_quotas({QUEUE: 2}, op=op())
    assert len(store.release(QUEUE, op=op())) == 2
    assert store.turn("free", "other").now == clock.now
