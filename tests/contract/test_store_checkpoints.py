"""Contract of both stores: kept steps, where attempts begin, how they end, and the rows that they leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from callsheet.records.jobs import NOTHING, AttemptRecord, Outcome, Spent
from callsheet.records.states import State
from callsheet.store import rules
from callsheet.store.protocol import Lease, Store
from tests.support.clock import Clock
from tests.support.jobs import (
    FAILURE,
    QUEUE,
    SUCCESS,
    checkpoint,
    claimed,
    finish,
    keep,
    kinds,
    op,
    reap,
    renew,
    running,
)


def fence(lease: Lease) -> tuple[str, int, str]:
    return lease.job.id, lease.attempt, lease.token


def hand_back(store: Store, lease: Lease, *, spent: Spent = NOTHING, preempted: bool = True) -> bool:
    return store.hand_back(*fence(lease), reason="yields", op=op(), spent=spent, preempted=preempted)


def lose(store: Store, lease: Lease, *, max_crashes: int = 3) -> bool:
    return store.lose(*fence(lease), reason="its child died", max_crashes=max_crashes, op=op())


def start_from(store: Store, lease: Lease, step: int, *, exact: bool = True) -> bool:
    return store.start_from(*fence(lease), step=step, exact=exact, reason="because", op=op())


def again(store: Store) -> Lease:
    """The next attempt of the job in front."""
    return claimed(store, store.release(QUEUE, op=op())[0], worker="l40s-1@b")


def spent(store: Store, job_id: str) -> Spent:
    """The sums in the record."""
    job = store.get(job_id)
    return Spent(job.gpu_s_useful, job.gpu_s_wasted, job.gpu_s_loading)


# -- keep_checkpoint


def test_the_newest_two_checkpoints_are_kept(store: Store) -> None:
    lease = running(store)
    dropped = [keep(store, lease, step=step, useful_s=step / 2) for step in (2, 4, 6)]
    assert dropped == [[], [], [checkpoint(2)]]
    job = store.get(lease.job.id)
    assert (job.checkpoint, job.checkpoint_before) == (checkpoint(6), checkpoint(4))


@pytest.mark.parametrize("step", [2, 4])
def test_an_older_step_never_replaces_a_newer_one(store: Store, step: int) -> None:
    """Saves are written in the background: a slow one may come last."""
    lease = running(store)
    keep(store, lease, step=4, useful_s=2.0)
    late = replace(checkpoint(step), key="late")
    answer = store.keep_checkpoint(*fence(lease), late, useful_s=1.0, op=op())
    assert answer == [late]
    job = store.get(lease.job.id)
    assert (job.checkpoint, job.checkpoint_before) == (checkpoint(4), None)
    assert lose(store, lease)
    assert store.attempts(job.id)[0].spent.useful == 2.0


def test_a_checkpoint_kept_again_with_its_op_drops_the_same(store: Store) -> None:
    lease, token = running(store), op()
    for step in (1, 2):
        keep(store, lease, step=step)
    kept = checkpoint(3)
    for _ in range(2):
        answer = store.keep_checkpoint(*fence(lease), kept, useful_s=1.0, op=token)
        assert answer == [checkpoint(1)]
    assert store.get(lease.job.id).checkpoint_before == checkpoint(2)


@pytest.mark.parametrize("how", ["reaped", "other token", "cancelled", "finished", "unknown"])
def test_no_fenced_verb_of_a_ghost_writes(store: Store, clock: Clock, how: str) -> None:
    lease = running(store, lease_s=3)
    keep(store, lease, step=2)
    if how == "reaped":
        clock.advance(3)
        reap(store)
        again(store)
    elif how == "cancelled":
        store.cancel(lease.job.id, reason="", op=op())
    elif how == "finished":
        finish(store, lease)
    elif how == "unknown":
        lease = replace(lease, job=replace(lease.job, id="nobody"))
    else:
        lease = replace(lease, token="stolen")
    before = store.get_many([lease.job.id])
    assert keep(store, lease, step=5) is None
    assert not start_from(store, lease, 0)
    assert not store.decline(*fence(lease), reason="", op=op())
    assert not hand_back(store, lease)
    assert not lose(store, lease)
    assert store.get_many([lease.job.id]) == before


# -- start_from


def handed_on(store: Store) -> Lease:
    """The second attempt of a job that kept steps 3 and 6."""
    lease = running(store)
    keep(store, lease, step=3, useful_s=1.5)
    keep(store, lease, step=6, useful_s=3.0)
    hand_back(store, lease, spent=Spent(useful=3.0, wasted=0.5, loading=0.25))
    return again(store)


def test_an_attempt_begins_at_the_newest_kept_step(store: Store) -> None:
    lease = handed_on(store)
    assert start_from(store, lease, 6)
    job = store.get(lease.job.id)
    assert (job.from_step, job.step, job.exact, job.restarts) == (6, 6, True, 0)
    assert (job.checkpoint, job.checkpoint_before) == (checkpoint(6), checkpoint(3))
    event = store.events(job.id)[-1]
    assert (event.kind, event.reason, event.attempt) == ("resumed", "because", 2)


def test_an_attempt_may_begin_at_the_one_before(store: Store) -> None:
    """The newest was damaged: it counts no more."""
    lease = handed_on(store)
    assert start_from(store, lease, 3)
    job = store.get(lease.job.id)
    assert (job.from_step, job.step, job.checkpoint, job.checkpoint_before) == (3, 3, checkpoint(3), None)
    assert keep(store, lease, step=4) == []
    assert store.get(job.id).checkpoint == checkpoint(4)


def test_a_beginning_at_0_gives_up_what_was_kept(store: Store) -> None:
    lease = handed_on(store)
    start_from(store, lease, 6, exact=False)
    token = op()
    for _ in range(2):
        assert store.start_from(*fence(lease), step=0, exact=True, reason="corrupt", op=token)
    job = store.get(lease.job.id)
    assert (job.from_step, job.step, job.checkpoint, job.checkpoint_before) == (0, 0, None, None)
    assert (job.restarts, job.exact) == (1, True)
    assert spent(store, job.id) == Spent(useful=0.0, wasted=3.5, loading=0.25)
    assert store.attempts(job.id)[0].spent == Spent(useful=0.0, wasted=3.5, loading=0.25)
    assert (store.events(job.id)[-1].kind, store.events(job.id)[-1].reason) == ("restarted", "corrupt")
    assert keep(store, lease, step=1) == []


def test_a_film_that_was_close_once_stays_so(store: Store) -> None:
    lease = handed_on(store)
    assert start_from(store, lease, 6, exact=False)
    assert not store.get(lease.job.id).exact
    hand_back(store, lease)
    lease = again(store)
    assert start_from(store, lease, 6, exact=True)
    assert not store.get(lease.job.id).exact


def test_an_attempt_that_began_nowhere_shows_0(store: Store) -> None:
    lease = handed_on(store)
    start_from(store, lease, 6)
    hand_back(store, lease)
    assert store.get(again(store).job.id).from_step == 0


# -- decline


def test_a_declined_order_is_taken_back(store: Store) -> None:
    lease, token = running(store), op()
    store.order(lease.job.id, 1, "yield", reason="pro waits", op=op())
    assert renew(store, lease) == "yield"
    for _ in range(2):
        assert store.decline(*fence(lease), reason="no storage", op=token)
    assert renew(store, lease) == ""
    assert kinds(store, lease.job.id)[-2:] == ["ordered", "declined"]
    assert store.get(lease.job.id).state is State.RUNNING


# -- hand back


@pytest.mark.parametrize("preempted", [True, False])
def test_a_hand_back_counts_only_when_it_was_a_preemption(store: Store, preempted: bool) -> None:
    lease = running(store)
    keep(store, lease, step=5)
    renew(store, lease, step=6)
    assert hand_back(store, lease, spent=Spent(2.0, 0.5, 0.25), preempted=preempted)
    job = store.get(lease.job.id)
    assert (job.preemptions, job.crashes, job.step) == (int(preempted), 0, 5)
    assert spent(store, job.id) == Spent(2.0, 0.5, 0.25)


# -- lose


def test_a_lost_attempt_keeps_its_checkpoint(store: Store) -> None:
    lease = running(store)
    keep(store, lease, step=4)
    renew(store, lease, step=7)
    token = op()
    for _ in range(2):
        assert store.lose(*fence(lease), reason="its child died", max_crashes=3, op=token)
    job = store.get(lease.job.id)
    assert (job.state, job.crashes, job.preemptions, job.step) == (State.PENDING, 1, 0, 4)
    assert job.checkpoint == checkpoint(4)
    assert store.backlog_jobs(QUEUE) == [job.id]
    assert store.undelivered() == []
    assert (kinds(store, job.id)[-1], store.events(job.id)[-1].reason) == ("lost", "its child died")


def test_the_last_loss_fails_the_job_with_the_evidence(store: Store) -> None:
    lease = running(store)
    for crashes in (1, 2, 3):
        renew(store, lease, step=crashes)
        assert lose(store, lease)
        assert store.get(lease.job.id).crashes == crashes
        lease = again(store) if crashes < 3 else lease
    job = store.get(lease.job.id)
    assert (job.state, job.error_type) == (State.FAILED, "JobFailed")
    for part in ("l40s-1@b", "attempt 3", "step 3 of 8", "denoise", "lost by this job: 3"):
        assert part in job.error
    assert store.undelivered() == [job.id]
    assert [row.end for row in store.attempts(job.id)] == ["lost"] * 3


def test_preemptions_between_crashes_do_not_count(store: Store) -> None:
    lease = running(store)
    for _ in range(4):
        hand_back(store, lease)
        lease = again(store)
    assert lose(store, lease, max_crashes=2)
    job = store.get(lease.job.id)
    assert (job.state, job.preemptions, job.crashes) == (State.PENDING, 4, 1)


# -- what each end writes


def cancel(store: Store, lease: Lease) -> bool:
    return store.cancel(lease.job.id, reason="not needed", op=op()) is State.CANCELLED


TOLD = Spent(useful=2.0, wasted=1.5, loading=0.5)  # 4 s until the last renewal, 2 of them are kept
ENDS: dict[str, tuple[Callable[[Store, Lease], bool], str, int, Spent]] = {
    "succeeded": (finish, "", 8, SUCCESS.spent),
    "failed": (lambda store, lease: finish(store, lease, FAILURE), "ModelError", 3, NOTHING),
    "handed-back": (
        lambda store, lease: hand_back(store, lease, spent=Spent(2, 1, 1)),
        "yields",
        4,
        Spent(2, 1, 1),
    ),
    "lost": (lose, "its child died", 4, TOLD),
    "cancelled": (cancel, "not needed", 6, TOLD),
}


@pytest.mark.parametrize("end", ENDS)
def test_each_end_writes_the_attempt_s_row(store: Store, clock: Clock, end: str) -> None:
    act, reason, to_step, told = ENDS[end]
    lease = running(store)
    began = clock.now
    assert store.attempts(lease.job.id) == []
    clock.advance(4)
    keep(store, lease, step=4, useful_s=2.0)
    store.renew(*fence(lease), lease_s=9, step=6, steps=8, phase="denoise", loading_s=0.5)
    clock.advance(1)
    assert act(store, lease)
    row = AttemptRecord(1, "h100-0@a", began, clock.now, end, reason, 0, to_step, told)
    assert store.attempts(lease.job.id) == [row]
    assert spent(store, lease.job.id) == told
    assert store.get(lease.job.id).step == to_step


def test_a_failure_that_says_no_step_keeps_the_one_it_had(store: Store) -> None:
    lease = running(store)
    renew(store, lease, step=5)
    finish(store, lease, Outcome(State.FAILED, error_type="ModelError", error="x"))
    assert store.get(lease.job.id).step == 5


def test_the_sums_of_a_job_are_those_of_its_attempts(store: Store, clock: Clock) -> None:
    lease = handed_on(store)
    start_from(store, lease, 6)
    clock.advance(2.5)
    renew(store, lease, step=7)
    lose(store, lease)
    lease = again(store)
    start_from(store, lease, 6)
    finish(store, lease)
    rows = store.attempts(lease.job.id)
    assert [(row.number, row.end, row.from_step, row.to_step) for row in rows] == [
        (1, "handed-back", 0, 6),
        (2, "lost", 6, 6),
        (3, "succeeded", 6, 8),
    ]
    for kind in ("useful", "wasted", "loading"):
        total = sum(getattr(row.spent, kind) for row in rows)
        assert getattr(spent(store, lease.job.id), kind) == pytest.approx(total)
    assert rows[1].spent == Spent(wasted=2.5)


# -- how often workers are lost


def test_the_mean_between_losses_begins_with_a_guess_and_learns(store: Store, clock: Clock) -> None:
    lease = running(store)
    assert lease.mean_s_between_losses == rules.GUESSED_GPU_S
    clock.advance(3600)
    renew(store, lease)
    lose(store, lease)
    lease = again(store)
    assert lease.mean_s_between_losses == pytest.approx((rules.GUESSED_GPU_S + 3600) / 2)
    clock.advance(1800)
    renew(store, lease)
    hand_back(store, lease)
    assert again(store).mean_s_between_losses == pytest.approx((rules.GUESSED_GPU_S + 5400) / 2)


def test_a_reaped_attempt_counts_as_a_loss_too(store: Store, clock: Clock) -> None:
    running(store, lease_s=3)
    clock.advance(3)
    assert len(reap(store)) == 1
    assert again(store).mean_s_between_losses == pytest.approx(rules.GUESSED_GPU_S / 2)
