"""Contract of both stores: submit, release, claim, renew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callsheet import errors
from callsheet.records.jobs import FORMAT, Job, Ticket
from callsheet.records.states import State
from callsheet.store.protocol import ClaimRefused, Lease, Store
from tests.support.clock import Clock
from tests.support.jobs import (
    QUEUE,
    claimed,
    finish,
    kinds,
    new_job,
    op,
    queued,
    reap,
    renew,
    request,
    running,
    submitted,
)

# -- submit


def test_submit_records_a_pending_job_without_ticket(store: Store, clock: Clock) -> None:
    canvas = {"link": ["x"], "empty": [], "deep": {"a": 1.5}}
    answer = store.submit(new_job("film", canvas=canvas, prompt='emoji 🎬 and "quotes"\n'), op=op())
    assert (answer.job_id, answer.created) == ("film", True)
    assert store.get("film") == Job(
        id="film",
        state=State.PENDING,
        request=request(prompt='emoji 🎬 and "quotes"\n'),
        need_gib=1.5,
        gpu_class="h100",
        queue=QUEUE,
        steps=8,
        created_at=clock.now,
        fair_tag=clock.now,
        start_tag=clock.now,
        canvas=canvas,
    )
    assert store.backlog() == {QUEUE: 1}
    assert store.published() == {}
    assert kinds(store, "film") == ["submitted"]


def test_jobs_of_the_same_instant_keep_their_order(store: Store) -> None:
    ids = [submitted(store, f"j{n}") for n in (3, 1, 2)]
    assert store.backlog_jobs(QUEUE) == ids
    times = [store.get(job_id).created_at for job_id in ids]
    assert times == sorted(set(times))


def test_a_clock_that_goes_back_keeps_the_order(store: Store, clock: Clock) -> None:
    first = submitted(store)
    clock.advance(-100)
    second = submitted(store)
    assert store.backlog_jobs(QUEUE) == [first, second]


def test_a_job_for_later_is_held(store: Store, clock: Clock) -> None:
    job_id = submitted(store, not_before=clock.now + 60)
    assert store.get(job_id).state is State.HELD
    assert store.backlog() == {}


def test_submit_repeated_with_one_op_answers_created_again(store: Store) -> None:
    job, token = new_job(), op()
    assert store.submit(job, op=token).created
    assert store.submit(job, op=token).created
    assert store.backlog() == {QUEUE: 1}
    assert not store.submit(job, op=op()).created


def test_a_known_id_with_another_body_is_refused(store: Store) -> None:
    submitted(store, "film", body="one")
    with pytest.raises(errors.IdempotencyConflict, match="film"):
        submitted(store, "film", body="two")
    assert store.counts()[State.PENDING] == 1


def test_an_idempotency_key_answers_the_first_job(store: Store) -> None:
    first = submitted(store, idempotency_key="k")
    answer = store.submit(new_job(idempotency_key="k"), op=op())
    assert (answer.job_id, answer.created) == (first, False)
    assert store.backlog_jobs(QUEUE) == [first]


def test_an_idempotency_key_with_another_body_is_refused(store: Store) -> None:
    first = submitted(store, body="one", idempotency_key="k")
    with pytest.raises(errors.IdempotencyConflict, match=first):
        submitted(store, "other", body="two", idempotency_key="k")
    with pytest.raises(errors.JobNotFound):
        store.get("other")


@pytest.mark.parametrize(("one", "two"), [(("a", "k"), ("b", "k")), (("a:b", "c"), ("a", "b:c"))])
def test_an_idempotency_key_is_of_its_tenant(
    store: Store, one: tuple[str, str], two: tuple[str, str]
) -> None:
    submitted(store, tenant=one[0], idempotency_key=one[1])
    assert store.submit(new_job(tenant=two[0], idempotency_key=two[1]), op=op()).created


@pytest.mark.parametrize("bad", ["", "a:b", "a b", "-x", "a\n", "x" * 201, "job:*"])
def test_an_id_that_cannot_be_a_key_is_refused(store: Store, bad: str) -> None:
    with pytest.raises(errors.RequestError, match="id"):
        store.submit(replace(new_job(), id=bad), op=op())
    assert store.counts()[State.PENDING] == 0


def test_an_empty_op_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="op is empty"):
        store.submit(new_job(), op="")
    with pytest.raises(ValueError, match="op is empty"):
        store.cancel("x", reason="", op="")


# -- release


def test_release_fills_up_to_the_quota_in_order(store: Store, clock: Clock) -> None:
    ids = [submitted(store) for _ in range(3)]
    store.set_quotas({QUEUE: 2}, op=op())
    assert store.release(QUEUE, op=op()) == [Ticket(ids[0], 1, QUEUE), Ticket(ids[1], 1, QUEUE)]
    assert store.release(QUEUE, op=op()) == []
    job = store.get(ids[0])
    assert (job.state, job.ticket, job.queued_at) == (State.QUEUED, 1, clock.now)
    assert store.published() == {QUEUE: 2}
    assert store.backlog_jobs(QUEUE) == [ids[2]]
    assert store.counts()[State.QUEUED] == 2


def test_release_without_quota_gives_nothing(store: Store) -> None:
    submitted(store)
    store.set_quotas({"pro.a100": 5}, op=op())
    assert store.release(QUEUE, op=op()) == []


def test_release_repeated_answers_the_same_tickets(store: Store) -> None:
    for _ in range(3):
        submitted(store)
    store.set_quotas({QUEUE: 1}, op=op())
    token = op()
    first = store.release(QUEUE, op=token)
    store.set_quotas({QUEUE: 9}, op=op())
    assert len(first) == 1
    assert store.release(QUEUE, op=token) == first
    assert store.published() == {QUEUE: 1}


def test_an_empty_release_repeated_stays_empty(store: Store) -> None:
    token = op()
    assert store.release(QUEUE, op=token) == []
    submitted(store)
    store.set_quotas({QUEUE: 1}, op=op())
    assert store.release(QUEUE, op=token) == []


def test_release_expires_what_is_too_late(store: Store, clock: Clock) -> None:
    late = submitted(store, deadline=clock.now + 5)
    good = submitted(store)
    clock.advance(6)
    store.set_quotas({QUEUE: 1}, op=op())
    assert [ticket.job_id for ticket in store.release(QUEUE, op=op())] == [good]
    job = store.get(late)
    assert (job.state, job.error_type) == (State.EXPIRED, "JobExpired")
    assert "deadline" in job.error
    assert store.undelivered() == [late]


# -- claim


def test_claim_begins_an_attempt(store: Store, clock: Clock) -> None:
    ticket = queued(store)
    clock.advance(2.5)
    lease = claimed(store, ticket, worker="w", token="t", lease_s=3.0)
    job = store.get(ticket.job_id)
    assert lease == Lease(job=job, attempt=1, token="t", until=clock.now + 3.0)
    assert (job.state, job.attempt, job.token, job.worker) == (State.RUNNING, 1, "t", "w")
    assert job.started_at == job.claimed_at == clock.now
    assert job.wait_s == pytest.approx(2.5)
    assert store.published() == {}
    assert kinds(store, job.id) == ["submitted", "released", "claimed"]


def test_claim_repeated_with_its_token_answers_the_same_lease(store: Store) -> None:
    ticket = queued(store)
    first = claimed(store, ticket, token="t")
    assert claimed(store, ticket, token="t") == first
    assert store.get(ticket.job_id).attempt == 1


def refusal(store: Store, ticket: Ticket) -> str:
    answer = store.claim(ticket, worker="other", token=op(), lease_s=5)
    assert isinstance(answer, ClaimRefused), answer
    return answer.reason


def test_claim_refusals(store: Store, clock: Clock) -> None:
    assert refusal(store, Ticket("nobody", 1, QUEUE)) == "unknown-job"
    ticket = queued(store)
    assert refusal(store, replace(ticket, number=2)) == "stale-ticket"
    assert refusal(store, replace(ticket, format=FORMAT + 1)) == "unknown-format"
    assert store.get(ticket.job_id).state is State.QUEUED
    claimed(store, ticket)
    assert refusal(store, ticket) == "held-by-other"
    store.cancel(ticket.job_id, reason="", op=op())
    assert refusal(store, ticket) == "not-queued"


def test_a_ticket_too_late_expires_the_job_and_says_so_again(store: Store, clock: Clock) -> None:
    ticket = queued(store, deadline=clock.now + 5)
    clock.advance(5)
    assert refusal(store, ticket) == "expired"
    assert refusal(store, ticket) == "expired"
    assert store.get(ticket.job_id).state is State.EXPIRED
    assert store.published() == {}


def test_a_started_job_does_not_expire(store: Store, clock: Clock) -> None:
    lease = running(store, deadline=clock.now + 5)
    clock.advance(6)
    store.wake(op=op())
    assert store.hand_back(lease.job.id, 1, lease.token, reason="preempted", op=op())
    store.wake(op=op())
    ticket = store.release(QUEUE, op=op())[0]
    assert claimed(store, ticket).attempt == 2


def test_an_old_ticket_gives_no_right_after_a_new_one(store: Store) -> None:
    old = queued(store)
    lease = claimed(store, old)
    store.hand_back(lease.job.id, 1, lease.token, reason="preempted", op=op())
    new = store.release(QUEUE, op=op())[0]
    assert new.number == 2
    assert refusal(store, old) == "stale-ticket"
    assert claimed(store, new).attempt == 2


# -- renew


def test_renew_extends_the_lease_and_records_progress(store: Store, clock: Clock) -> None:
    lease = running(store, lease_s=3)
    clock.advance(2)
    assert store.renew(lease.job.id, 1, lease.token, lease_s=3, step=4, steps=9, phase="denoise") == ""
    job = store.get(lease.job.id)
    assert (job.step, job.steps, job.phase, job.lease_until) == (4, 9, "denoise", clock.now + 3)
    clock.advance(2)
    assert reap(store, max_crashes=3) == []


def test_renew_succeeds_after_the_end_of_the_lease(store: Store, clock: Clock) -> None:
    lease = running(store, lease_s=3)
    clock.advance(60)
    assert renew(store, lease, lease_s=3) == ""
    assert reap(store, max_crashes=3) == []


@pytest.mark.parametrize("how", ["reaped", "handed back", "finished", "unknown", "other token"])
def test_renew_is_fenced(store: Store, clock: Clock, how: str) -> None:
    lease = running(store, lease_s=3)
    if how == "reaped":
        clock.advance(3)
        assert reap(store, max_crashes=3) == [lease.job.id]
    elif how == "handed back":
        store.hand_back(lease.job.id, 1, lease.token, reason="", op=op())
    elif how == "finished":
        finish(store, lease)
    elif how == "unknown":
        lease = replace(lease, job=replace(lease.job, id="nobody"))
    else:
        lease = replace(lease, token="stolen")
    before = store.get_many([lease.job.id])
    assert renew(store, lease) == "fenced"
    assert store.get_many([lease.job.id]) == before


def test_a_closed_attempt_is_never_adopted(store: Store) -> None:
    """Neither under its own token nor under another one: its number is in the record."""
    lease = running(store)
    store.hand_back(lease.job.id, 1, lease.token, reason="", op=op())
    for released in (False, True):
        assert renew(store, lease) == "fenced"
        assert renew(store, replace(lease, token="other")) == "fenced"
        assert renew(store, replace(lease, attempt=0, token="other")) == "fenced"
        assert released or store.release(QUEUE, op=op())
    assert store.get(lease.job.id).state is State.QUEUED


def test_renew_after_a_new_attempt_is_fenced(store: Store, clock: Clock) -> None:
    old = running(store, lease_s=3)
    clock.advance(3)
    reap(store, max_crashes=3)
    new = claimed(store, store.release(QUEUE, op=op())[0])
    assert renew(store, old) == "fenced"
    assert renew(store, new) == ""


@pytest.mark.parametrize("state", [State.PENDING, State.QUEUED])
def test_a_claim_that_a_failover_forgot_is_adopted(store: Store, state: State) -> None:
    """The record knows no attempt 1: only a lost write explains who holds it."""
    job_id = submitted(store) if state is State.PENDING else queued(store).job_id
    lease = Lease(job=store.get(job_id), attempt=1, token="mine", until=0.0)
    other = replace(lease, token="also claimed it, before another fail-over")
    assert renew(store, lease, step=5) == ""
    job = store.get(job_id)
    assert (job.state, job.attempt, job.token, job.step) == (State.RUNNING, 1, "mine", 5)
    assert (store.backlog(), store.published()) == ({}, {})
    assert kinds(store, job_id)[-1] == "adopted"
    assert renew(store, other) == "fenced"
    assert renew(store, lease) == ""
    assert finish(store, lease)


def test_of_two_lost_attempts_one_owns_the_job(store: Store) -> None:
    job_id = queued(store).job_id
    leases = [Lease(job=store.get(job_id), attempt=n, token=f"t{n}", until=0.0) for n in (2, 1, 3)]
    assert [renew(store, lease) for lease in leases] == ["", "fenced", "fenced"]
    assert store.get(job_id).attempt == 2
