"""Contract of both stores: finish, hand back, cancel, order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callsheet import errors
from callsheet.records.jobs import Outcome, Spent
from callsheet.records.states import State
from callsheet.store.protocol import Store
from tests.support.clock import Clock
from tests.support.jobs import (
    FAILURE,
    QUEUE,
    SUCCESS,
    claimed,
    ended,
    finish,
    keep,
    kinds,
    op,
    queued,
    reap,
    renew,
    running,
    submitted,
)

# -- finish


def test_finish_records_the_film(store: Store, clock: Clock) -> None:
    lease = running(store)
    clock.advance(4)
    assert finish(store, lease)
    job = store.get(lease.job.id)
    assert (job.state, job.film, job.manifest, job.frames_sha256) == (
        State.SUCCEEDED,
        SUCCESS.film,
        SUCCESS.manifest,
        "abc",
    )
    assert (job.gpu_s_useful, job.gpu_s_wasted, job.gpu_s_loading) == (2.5, 0.25, 1.125)
    assert (job.step, job.phase, job.lease_until, job.ended_at) == (8, "", 0.0, clock.now)
    assert (job.progress, job.delivered) == (1.0, False)
    assert job.run_s == pytest.approx(4.0)
    assert store.undelivered() == [job.id]
    assert kinds(store, job.id)[-1] == "succeeded"


def test_finish_records_the_failure(store: Store) -> None:
    job_id = ended(store, outcome=FAILURE)
    job = store.get(job_id)
    assert (job.state, job.error_type, job.error, job.step) == (
        State.FAILED,
        "ModelError",
        "weights are missing",
        3,
    )
    assert store.events(job_id)[-1].reason == "ModelError"


def test_finish_repeated_answers_true_again(store: Store) -> None:
    lease, token = running(store), op()
    for _ in range(2):
        assert store.finish(lease.job.id, 1, lease.token, SUCCESS, op=token)
    assert store.get(lease.job.id).gpu_s_useful == 2.5
    assert not finish(store, lease)


def test_finish_is_fenced(store: Store, clock: Clock) -> None:
    old = running(store, lease_s=3)
    clock.advance(3)
    reap(store, max_crashes=3)
    new = claimed(store, store.release(QUEUE, op=op())[0])
    assert not finish(store, old)
    assert not finish(store, replace(new, token="stolen"))
    assert store.get(old.job.id).state is State.RUNNING
    assert finish(store, new)


def test_finish_takes_only_an_end(store: Store) -> None:
    lease = running(store)
    with pytest.raises(ValueError, match="succeeded or failed"):
        finish(store, lease, Outcome(state=State.CANCELLED))


# -- hand back


def test_hand_back_returns_the_job_to_its_place(store: Store) -> None:
    lease = running(store)
    later = submitted(store)
    assert store.hand_back(lease.job.id, 1, lease.token, reason="preempted", op=op(), spent=Spent(wasted=1.5))
    assert store.backlog_jobs(QUEUE) == [lease.job.id, later]
    job = store.get(lease.job.id)
    assert (job.state, job.preemptions, job.crashes, job.gpu_s_wasted) == (State.PENDING, 1, 0, 1.5)
    assert (job.phase, job.order, job.lease_until) == ("", "", 0.0)
    event = store.events(job.id)[-1]
    assert (event.kind, event.reason, event.attempt) == ("handed-back", "preempted", 1)


def test_hand_back_repeated_counts_once(store: Store) -> None:
    lease, token = running(store), op()
    for _ in range(2):
        assert store.hand_back(lease.job.id, 1, lease.token, reason="", op=token, spent=Spent(wasted=1))
    assert store.get(lease.job.id).preemptions == 1


def test_hand_back_is_fenced(store: Store) -> None:
    lease = running(store)
    assert not store.hand_back(lease.job.id, 1, "stolen", reason="", op=op())
    assert not store.hand_back("nobody", 1, lease.token, reason="", op=op())
    assert store.get(lease.job.id).state is State.RUNNING


def test_progress_is_kept_while_the_job_waits_again(store: Store) -> None:
    lease = running(store)
    keep(store, lease, step=6)
    renew(store, lease, step=7)
    store.hand_back(lease.job.id, 1, lease.token, reason="", op=op())
    assert store.get(lease.job.id).progress == pytest.approx(6 / 8)


# -- cancel


@pytest.mark.parametrize("state", ["pending", "held", "queued", "running"])
def test_cancel_ends_any_active_job_at_once(store: Store, clock: Clock, state: str) -> None:
    if state == "held":
        job_id = submitted(store, not_before=clock.now + 9)
    else:
        job_id = {"pending": submitted, "queued": queued_id, "running": running_id}[state](store)
    assert store.cancel(job_id, reason="not needed", op=op()) is State.CANCELLED
    job = store.get(job_id)
    assert (job.state, job.error_type, job.ended_at) == (State.CANCELLED, "JobCancelled", clock.now)
    assert "not needed" in job.error
    assert (store.backlog(), store.published()) == ({}, {})
    assert store.undelivered() == [job_id]
    assert store.wake(op=op()) == []
    clock.advance(100)
    assert store.wake(op=op()) == []
    assert reap(store, max_crashes=3) == []


def queued_id(store: Store) -> str:
    return queued(store).job_id


def running_id(store: Store) -> str:
    return running(store).job.id


def test_the_attempt_of_a_cancelled_job_is_told_and_writes_nothing(store: Store) -> None:
    lease = running(store)
    store.cancel(lease.job.id, reason="", op=op())
    before = store.get(lease.job.id)
    assert renew(store, lease) == "cancel"
    assert renew(store, replace(lease, token="stolen")) == "fenced"
    assert not finish(store, lease)
    assert not store.hand_back(lease.job.id, 1, lease.token, reason="", op=op())
    assert store.get(lease.job.id) == before


def test_cancel_leaves_an_ended_job_alone(store: Store) -> None:
    job_id = ended(store)
    assert store.cancel(job_id, reason="", op=op()) is State.SUCCEEDED
    assert kinds(store, job_id)[-1] == "succeeded"


def test_cancel_repeated_is_one_event(store: Store) -> None:
    job_id, token = submitted(store), op()
    for _ in range(2):
        assert store.cancel(job_id, reason="", op=token) is State.CANCELLED
    assert kinds(store, job_id) == ["submitted", "cancelled"]


@pytest.mark.parametrize("name", ["nobody", "bad:name", ""])
def test_cancel_of_an_unknown_job(store: Store, name: str) -> None:
    with pytest.raises(errors.JobNotFound):
        store.cancel(name, reason="", op=op())


# -- order


def test_an_order_reaches_the_running_attempt(store: Store) -> None:
    lease, token = running(store), op()
    for _ in range(2):
        assert store.order(lease.job.id, 1, "yield", reason="pro waits", op=token)
    assert renew(store, lease) == "yield"
    assert kinds(store, lease.job.id).count("ordered") == 1
    store.hand_back(lease.job.id, 1, lease.token, reason="preempted", op=op())
    new = claimed(store, store.release(QUEUE, op=op())[0])
    assert renew(store, new) == ""


def test_an_order_for_another_attempt_is_refused(store: Store) -> None:
    lease = running(store)
    assert not store.order(lease.job.id, 2, "yield", reason="", op=op())
    assert not store.order("nobody", 1, "yield", reason="", op=op())
    finish(store, lease)
    assert not store.order(lease.job.id, 1, "yield", reason="", op=op())
    with pytest.raises(ValueError, match="dance"):
        store.order(lease.job.id, 1, "dance", reason="", op=op())
