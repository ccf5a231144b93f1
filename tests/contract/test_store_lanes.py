"""Turns of tenants, sums of backlogs, routes of tickets, wishes and memories: the same in both stores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from callsheet.records.lanes import Desired, Head, Waiting
from callsheet.store.protocol import Store
from tests.support.clock import Clock
from tests.support.fleet import gpu
from tests.support.jobs import QUEUE, claimed, new_job, op, running

WISH = Desired(("pro.h100", QUEUE), keep=("wan",), load="ltx", why="lane ltx lacks 1.0 GPUs of h100")


def submit(store: Store, job_id: str, *, tenant: str = "a", queue: str = QUEUE, **changes: Any) -> None:
    store.submit(replace(new_job(job_id, queue=queue, tenant=tenant), **changes), op=op())


def order_of(store: Store) -> list[str]:
    return store.backlog_jobs(QUEUE)


def test_a_tenant_beyond_its_turns_lets_others_go_first(store: Store) -> None:
    for number in range(3):
        submit(store, f"many-{number}", tenant="many", charge_s=100.0)
    submit(store, "first", tenant="other", charge_s=100.0)
    assert order_of(store) == ["many-0", "first", "many-1", "many-2"]


def test_a_job_stands_behind_its_turn_by_its_delay(store: Store) -> None:
    submit(store, "long", delay_s=60.0)
    submit(store, "short", tenant="b", delay_s=5.0)
    assert order_of(store) == ["short", "long"]
    assert store.get("long").start_tag == pytest.approx(store.get("long").fair_tag + 60.0)


def test_virtual_time_jumps_to_the_turn_that_was_taken(store: Store, clock: Clock) -> None:
    for number in range(3):
        submit(store, f"many-{number}", tenant="many", charge_s=100.0)
    store.set_quotas({QUEUE: 3}, op=op())
    store.release(QUEUE, op=op())
    submit(store, "late", tenant="other")
    assert store.get("late").fair_tag == pytest.approx(clock.now + 200.0, abs=0.001)


def test_an_assigned_job_takes_its_turn_too(store: Store, clock: Clock) -> None:
    submit(store, "one", tenant="many", charge_s=100.0)
    submit(store, "two", tenant="many")
    store.assign("two", "direct.h100-0@a", reason="", op=op())
    submit(store, "late", tenant="other")
    assert store.get("late").fair_tag == pytest.approx(clock.now + 100.0, abs=0.001)


def test_a_clock_that_stepped_back_does_not_run_virtual_time_away(store: Store, clock: Clock) -> None:
    submit(store, "before")
    clock.now -= 3600.0
    store.set_quotas({QUEUE: 100}, op=op())
    for number in range(10):
        store.release(QUEUE, op=op())
        submit(store, f"after-{number}", tenant=f"t{number}")
    assert store.get("after-9").fair_tag == pytest.approx(clock.now + 3600.0, abs=0.001)


def test_a_returned_job_keeps_its_turn_and_its_place(store: Store) -> None:
    lease = running(store, "film")
    before = store.get("film")
    store.hand_back("film", 1, lease.token, reason="", op=op())
    after = store.get("film")
    assert (after.fair_tag, after.start_tag) == (before.fair_tag, before.start_tag)


def test_lanes_tell_sums_and_heads(store: Store) -> None:
    submit(store, "one", work_s=10.0)
    submit(store, "two", tenant="b", work_s=20.0)
    submit(store, "three", tenant="c", work_s=40.0)
    told = {one.queue: one for one in store.lanes(2)}[QUEUE]
    heads = [store.get(name) for name in ("one", "two")]
    assert told == Waiting(
        QUEUE, 3, 70.0, 70.0, tuple(Head(j.id, j.start_tag, j.work_s, j.created_at, j.ticket) for j in heads)
    )


def test_a_job_with_a_shared_ticket_waits_and_one_with_a_direct_ticket_does_not(store: Store) -> None:
    for name, work_s in (("shared", 10.0), ("direct", 20.0), ("pending", 40.0)):
        submit(store, name, tenant=name, work_s=work_s)
    store.set_quotas({"free.l40s": 1}, routes={QUEUE: ("free.l40s",)}, op=op())
    store.release(QUEUE, op=op())
    store.assign("direct", "direct.h100-0@a", reason="", op=op())
    (told,) = store.lanes(5)
    assert (told.jobs, told.work_s, told.offered_s) == (2, 50.0, 70.0)
    assert [head.job_id for head in told.heads] == ["shared", "pending"]


def test_a_backlog_that_ran_empty_holds_no_work(store: Store) -> None:
    submit(store, "one", work_s=0.1)
    submit(store, "two", tenant="b", work_s=0.2)
    store.set_quotas({QUEUE: 2}, op=op())
    for ticket in store.release(QUEUE, op=op()):
        claimed(store, ticket)
    (told,) = store.lanes()
    assert (told.jobs, told.work_s, told.heads) == (0, 0.0, ())


def test_tickets_go_where_the_route_has_room(store: Store) -> None:
    for number in range(5):
        submit(store, f"j{number}", tenant=f"t{number}")
    quotas = {"free.a100": 1, "free.l40s": 2, QUEUE: 1}
    store.set_quotas(quotas, routes={QUEUE: ("free.a100", "free.l40s", QUEUE)}, op=op())
    found = [(ticket.job_id, ticket.queue) for ticket in store.release(QUEUE, op=op())]
    assert found == [("j0", "free.a100"), ("j1", "free.l40s"), ("j2", "free.l40s"), ("j3", QUEUE)]
    assert [store.get(name).home for name, _ in found] == ["free.a100", "free.l40s", "free.l40s", ""]
    assert store.published() == {"free.a100": 1, "free.l40s": 2, QUEUE: 1}
    assert store.release(QUEUE, op=op()) == []


def test_a_ticket_in_another_queue_is_claimed_and_frees_its_room(store: Store) -> None:
    submit(store, "film")
    store.set_quotas({"free.a100": 1}, routes={QUEUE: ("free.a100",)}, op=op())
    (ticket,) = store.release(QUEUE, op=op())
    claimed(store, ticket)
    assert (store.get("film").home, store.published()) == ("", {})


def test_new_quotas_replace_the_routes(store: Store) -> None:
    submit(store, "film")
    store.set_quotas({"free.a100": 1}, routes={QUEUE: ("free.a100",)}, op=op())
    store.set_quotas({"free.a100": 1}, op=op())
    assert store.release(QUEUE, op=op()) == []


def test_a_wish_is_kept_with_the_time_it_was_given(store: Store, clock: Clock) -> None:
    store.desire({"h100-0@a": WISH, "h100-1@a": Desired(())}, op=op())
    assert store.desired() == {
        "h100-0@a": replace(WISH, at=clock.now),
        "h100-1@a": Desired((), at=clock.now),
    }
    store.desire({"h100-1@a": None}, op=op())
    assert store.desired_of("h100-1@a") is None
    assert store.desired_of("h100-0@a") == replace(WISH, at=clock.now)


def test_a_wish_ends_with_its_gpu(store: Store) -> None:
    one = gpu("h100")
    store.beat_gpu(one, ttl_s=10)
    store.desire({one.name: WISH}, op=op())
    store.gpus()
    assert store.desired_of(one.name) is not None
    store.drop_gpu(one.name)
    assert store.desired() == {}


def test_a_memory_is_plain_data_by_name(store: Store) -> None:
    assert store.recall("rebalance") == {}
    memory = {"at": 1.5, "targets": {"h100": {"wan": 2.0}}, "peaks": {"wan": [[60.0, 3.0]]}}
    store.remember("rebalance", memory, op=op())
    assert store.recall("rebalance") == memory
    assert store.recall("other") == {}


def test_a_renewal_tells_how_long_steps_take(store: Store, clock: Clock) -> None:
    lease = running(store, "film")
    clock.now += 1.0
    told = {"lease_s": 5.0, "step": 2, "steps": 8, "phase": "denoise"}
    store.renew("film", lease.attempt, lease.token, **told, step_s=0.25)  # type: ignore[arg-type]
    job = store.get("film")
    assert (job.step_s, job.stepped_at) == (0.25, clock.now)


def test_a_renewal_without_progress_is_no_step(store: Store, clock: Clock) -> None:
    lease = running(store)
    told = {"lease_s": 9.0, "steps": 8, "phase": "denoise"}
    for step, later in ((1, 0.0), (1, 2.0), (2, 3.0), (2, 4.0)):
        clock.advance(later)
        store.renew(lease.job.id, lease.attempt, lease.token, step=step, **told)  # type: ignore[arg-type]
        assert store.get(lease.job.id).stepped_at == pytest.approx(
            clock.now - (later if later in (2.0, 4.0) else 0.0)
        )


def test_weights_on_their_way_keep_their_time_while_the_queues_change(store: Store, clock: Clock) -> None:

    store.desire({"a": Desired(("free.a100",), load="wan")}, op=op())
    began = clock.now
    clock.advance(5.0)
    store.desire({"a": Desired(("pro.a100", "free.a100"), load="wan")}, op=op())
    assert store.desired()["a"].at == began
    clock.advance(5.0)
    store.desire({"a": Desired(("pro.a100",), load="ltx")}, op=op())
    assert store.desired()["a"].at == clock.now


def test_a_backlog_that_jobs_were_moved_into_is_seen_until_they_are_gone(store: Store) -> None:
    """Nobody ever submitted to it."""
    submit(store, "moved", work_s=30.0)
    store.reroute("moved", gpu_class="a100", queue="free.a100", op=op())
    there = {one.queue: (one.jobs, one.work_s) for one in store.lanes()}
    assert there == {QUEUE: (0, 0.0), "free.a100": (1, 30.0)}
    store.set_quotas({"free.a100": 1}, op=op())
    (ticket,) = store.release("free.a100", op=op())
    assert {one.queue: one.jobs for one in store.lanes()} == {QUEUE: 0, "free.a100": 1}
    claimed(store, ticket)
    assert [one.queue for one in store.lanes()] == [QUEUE]
