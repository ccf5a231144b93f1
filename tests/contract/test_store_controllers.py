"""Contract of both stores: reap, heal, wake, reroute, quotas, ticks."""

from __future__ import annotations

import pytest

from callsheet.records.jobs import Ticket
from callsheet.records.states import State
from callsheet.store.protocol import ClaimRefused, Store
from tests.support.clock import Clock
from tests.support.jobs import QUEUE, claimed, kinds, op, queued, reap, renew, running, submitted

# -- reap


def test_reap_takes_back_only_what_ran_out(store: Store, clock: Clock) -> None:
    short = running(store, lease_s=3)
    running(store, lease_s=30)
    waiting = submitted(store)
    clock.advance(2.9)
    assert reap(store, max_crashes=3) == []
    clock.advance(0.1)
    assert reap(store, max_crashes=3) == [short.job.id]
    job = store.get(short.job.id)
    assert (job.state, job.crashes, job.preemptions, job.worker) == (State.PENDING, 1, 0, "h100-0@a")
    assert store.backlog_jobs(QUEUE) == [short.job.id, waiting]
    assert kinds(store, job.id)[-1] == "lost"


def test_reap_repeated_answers_the_same_and_counts_once(store: Store, clock: Clock) -> None:
    lease, token = running(store, lease_s=3), op()
    clock.advance(3)
    for _ in range(2):
        assert store.reap(max_crashes=3, lease_s=3.0, gap_s=1e9, op=token) == [lease.job.id]
    assert store.get(lease.job.id).crashes == 1
    assert reap(store, max_crashes=3) == []


def test_reap_is_bounded(store: Store, clock: Clock) -> None:
    leases = [running(store, lease_s=n) for n in (1, 2, 3)]
    clock.advance(5)
    assert reap(store, limit=2) == [lease.job.id for lease in leases[:2]]
    assert reap(store, limit=2) == [leases[2].job.id]


def test_the_last_crash_fails_the_job_with_the_evidence(store: Store, clock: Clock) -> None:
    lease = running(store, lease_s=3)
    for crash in (1, 2):
        renew(store, lease, step=5, lease_s=3)
        clock.advance(3)
        assert reap(store, max_crashes=2) == [lease.job.id]
        assert store.get(lease.job.id).crashes == crash
        if crash == 1:
            lease = claimed(store, store.release(QUEUE, op=op())[0], worker="l40s-3@b", lease_s=3)
    job = store.get(lease.job.id)
    assert (job.state, job.error_type, job.attempt) == (State.FAILED, "JobFailed", 2)
    for part in ("l40s-3@b", "attempt 2", "step 5 of 8", "denoise", "lost by this job: 2", "log"):
        assert part in job.error
    assert store.undelivered() == [job.id]


# -- heal


def test_heal_takes_back_old_tickets_of_one_queue(store: Store, clock: Clock) -> None:
    old = queued(store)
    other = queued(store, queue="pro.a100")
    store.set_quotas({QUEUE: 5}, op=op())
    clock.advance(10)
    young = queued(store)
    assert store.heal(QUEUE, older_s=10, op=op()) == [old.job_id]
    assert store.get(old.job_id).state is State.PENDING
    assert store.published() == {QUEUE: 1, "pro.a100": 1}
    assert kinds(store, old.job_id)[-1] == "healed"
    refused = store.claim(old, worker="w", token=op(), lease_s=3)
    assert refused == ClaimRefused("not-queued")
    again = store.release(QUEUE, op=op())
    assert again == [Ticket(old.job_id, 2, QUEUE)]
    assert store.claim(old, worker="w", token=op(), lease_s=3) == ClaimRefused("stale-ticket")
    assert {claimed(store, ticket).attempt for ticket in (again[0], young, other)} == {1}


def test_heal_repeated_answers_the_same(store: Store, clock: Clock) -> None:
    tickets = [queued(store) for _ in range(3)]
    clock.advance(10)
    token = op()
    first = store.heal(QUEUE, older_s=5, op=token, limit=2)
    assert first == [ticket.job_id for ticket in tickets[:2]]
    assert store.heal(QUEUE, older_s=5, op=token, limit=2) == first
    assert store.published() == {QUEUE: 1}


# -- wake


def test_wake_releases_what_was_held(store: Store, clock: Clock) -> None:
    soon = submitted(store, not_before=clock.now + 5)
    later = submitted(store, queue="pro.a100", not_before=clock.now + 50)
    assert store.wake(op=op()) == []
    clock.advance(5)
    token = op()
    for _ in range(2):
        assert store.wake(op=token) == [QUEUE]
    assert store.get(soon).state is State.PENDING
    assert store.get(later).state is State.HELD
    assert kinds(store, soon) == ["submitted", "woken"]


def test_a_held_job_keeps_its_place_in_time(store: Store, clock: Clock) -> None:
    held = submitted(store, not_before=clock.now + 5)
    clock.advance(5)
    later = submitted(store)
    store.wake(op=op())
    assert store.backlog_jobs(QUEUE) == [held, later]


def test_wake_expires_what_has_not_started(store: Store, clock: Clock) -> None:
    pending = submitted(store, queue="pro.a100", deadline=clock.now + 5)
    held = submitted(store, deadline=clock.now + 5, not_before=clock.now + 5)
    ticket = queued(store, deadline=clock.now + 5)
    run = running(store, deadline=clock.now + 5)
    safe = submitted(store, deadline=clock.now + 50)
    clock.advance(5)
    assert store.wake(op=op()) == []
    for job_id in (pending, held, ticket.job_id):
        assert store.get(job_id).state is State.EXPIRED
    assert store.get(run.job.id).state is State.RUNNING
    assert store.get(safe).state is State.PENDING
    assert sorted(store.undelivered()) == sorted([pending, held, ticket.job_id])
    assert (store.backlog(), store.published()) == ({QUEUE: 1}, {})


def test_wake_is_bounded(store: Store, clock: Clock) -> None:
    ids = [submitted(store, not_before=clock.now + n) for n in (1, 2, 3)]
    clock.advance(5)
    store.wake(op=op(), limit=2)
    assert store.backlog_jobs(QUEUE) == ids[:2]


# -- reroute


def test_reroute_moves_a_waiting_job_and_keeps_its_place(store: Store) -> None:
    first = submitted(store)
    second = submitted(store, queue="free.a100")
    token = op()
    for _ in range(2):
        assert store.reroute(first, gpu_class="a100", queue="free.a100", op=token)
    job = store.get(first)
    assert (job.state, job.gpu_class, job.queue) == (State.PENDING, "a100", "free.a100")
    assert store.backlog_jobs("free.a100") == [first, second]
    assert store.backlog() == {"free.a100": 2}
    assert kinds(store, first) == ["submitted", "rerouted"]


def test_reroute_of_a_held_job_shows_when_it_wakes(store: Store, clock: Clock) -> None:
    job_id = submitted(store, not_before=clock.now + 5)
    assert store.reroute(job_id, gpu_class="a100", queue="free.a100", op=op())
    clock.advance(5)
    assert store.wake(op=op()) == ["free.a100"]
    assert store.backlog() == {"free.a100": 1}


def test_reroute_of_anything_else_is_refused(store: Store) -> None:
    ticket = queued(store)
    assert not store.reroute(ticket.job_id, gpu_class="a100", queue="free.a100", op=op())
    claimed(store, ticket)
    assert not store.reroute(ticket.job_id, gpu_class="a100", queue="free.a100", op=op())
    store.cancel(ticket.job_id, reason="", op=op())
    assert not store.reroute(ticket.job_id, gpu_class="a100", queue="free.a100", op=op())
    assert not store.reroute("nobody", gpu_class="a100", queue="free.a100", op=op())
    assert store.get(ticket.job_id).queue == QUEUE


# -- quotas


def test_set_quotas_replaces_all_and_a_repeat_changes_nothing(store: Store) -> None:
    submitted(store)
    submitted(store, queue="pro.a100")
    token = op()
    store.set_quotas({QUEUE: 1}, op=token)
    store.set_quotas({"pro.a100": 1}, op=op())
    store.set_quotas({QUEUE: 1}, op=token)
    assert store.release(QUEUE, op=op()) == []
    assert len(store.release("pro.a100", op=op())) == 1
    store.set_quotas({}, op=op())
    submitted(store, queue="pro.a100")
    assert store.release("pro.a100", op=op()) == []


def test_a_quota_below_what_is_out_takes_nothing_back(store: Store) -> None:
    queued(store)
    queued(store)
    submitted(store)
    store.set_quotas({QUEUE: 1}, op=op())
    assert store.release(QUEUE, op=op()) == []
    assert store.published() == {QUEUE: 2}


# -- ticks


def test_of_two_beats_with_one_number_one_begins(store: Store) -> None:
    assert store.begin_tick("release", 7, token="a", busy_s=30)
    assert store.begin_tick("release", 7, token="a", busy_s=30)
    assert not store.begin_tick("release", 7, token="b", busy_s=30)
    assert store.begin_tick("reaper", 7, token="b", busy_s=30)


def test_a_newer_tick_waits_for_the_end_of_the_one_under_way(store: Store) -> None:
    store.begin_tick("release", 7, token="a", busy_s=30)
    assert not store.begin_tick("release", 8, token="b", busy_s=30)
    store.end_tick("release", 7, token="b", report={})
    assert not store.begin_tick("release", 8, token="b", busy_s=30)
    store.end_tick("release", 7, token="a", report={"released": 3, "reasons": [], "duration_s": 0.25})
    assert store.begin_tick("release", 8, token="b", busy_s=30)


def test_an_old_tick_never_begins(store: Store) -> None:
    store.begin_tick("release", 7, token="a", busy_s=30)
    store.end_tick("release", 7, token="a", report={})
    assert not store.begin_tick("release", 6, token="b", busy_s=30)
    assert not store.begin_tick("release", 7, token="b", busy_s=30)
    assert store.begin_tick("release", 10, token="b", busy_s=30)


def test_a_dead_holder_blocks_only_for_a_while(store: Store, clock: Clock) -> None:
    store.begin_tick("release", 7, token="dead", busy_s=30)
    clock.advance(29)
    assert not store.begin_tick("release", 8, token="b", busy_s=30)
    clock.advance(1)
    assert store.begin_tick("release", 8, token="b", busy_s=30)
    store.end_tick("release", 7, token="dead", report={})
    assert not store.begin_tick("release", 9, token="c", busy_s=30)


def test_the_last_report_is_that_of_the_tick_that_ended(store: Store) -> None:
    report = {"released": 3, "reasons": [], "duration_s": 0.25}
    assert store.last_report("release") == {}
    store.begin_tick("release", 7, token="a", busy_s=30)
    store.end_tick("release", 6, token="a", report={"released": 0})
    store.end_tick("release", 7, token="b", report={"released": 0})
    assert store.last_report("release") == {}
    store.end_tick("release", 7, token="a", report=report)
    assert store.last_report("release") == report
    assert store.last_report("reaper") == {}


def test_a_lock_needs_a_token(store: Store) -> None:
    with pytest.raises(ValueError, match="token"):
        store.begin_tick("release", 1, token="", busy_s=1)
    with pytest.raises(ValueError, match="token"):
        store.lock_delivery("x", token="", busy_s=1)
