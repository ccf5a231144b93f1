"""Contract of both stores: the operators' words: requeue, erase, orders about GPUs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from callsheet import errors
from callsheet.records.gpus import GpuOrder
from callsheet.records.jobs import Outcome, Spent
from callsheet.records.states import State
from callsheet.store.keys import Keys
from callsheet.store.protocol import ClaimRefused, Store
from callsheet.store.redis_store import RedisStore
from tests.contract.conftest import RETENTION_S
from tests.support.clock import Clock
from tests.support.jobs import (
    FAILURE,
    GPU,
    QUEUE,
    checkpoint,
    claimed,
    ended,
    finish,
    keep,
    kinds,
    new_job,
    op,
    queued,
    reap,
    renew,
    running,
    submitted,
)
from tests.support.valkey import Valkey


def requeue(store: Store, job_id: str, *, from_start: bool = False) -> State:
    return store.requeue(job_id, from_start=from_start, reason="by hand", op=op())


def failed(store: Store, **changes: Any) -> str:
    """A job that failed in its second attempt, with steps 3 and 6 kept in the first."""
    lease = running(store, **changes)
    keep(store, lease, step=3, useful_s=1.5)
    keep(store, lease, step=6, useful_s=3.0)
    spent = Spent(useful=3.0, wasted=0.5)
    store.hand_back(lease.job.id, 1, lease.token, reason="yields", op=op(), spent=spent)
    lease = claimed(store, store.release(QUEUE, op=op())[0])
    store.start_from(lease.job.id, 2, lease.token, step=6, exact=False, reason="", op=op())
    assert finish(store, lease, FAILURE)
    return lease.job.id


# -- requeue


def test_a_failed_job_goes_on_from_its_checkpoint(store: Store) -> None:
    job_id = failed(store)
    later = submitted(store)
    assert requeue(store, job_id) is State.PENDING
    job = store.get(job_id)
    assert (job.state, job.error_type, job.error, job.ended_at) == (State.PENDING, "", "", 0.0)
    assert (job.checkpoint, job.checkpoint_before) == (checkpoint(6), checkpoint(3))
    assert (job.attempt, job.restarts, job.gpu_s_useful) == (2, 0, 3.0)
    assert store.backlog_jobs(QUEUE) == [job_id, later]
    assert (kinds(store, job_id)[-1], store.events(job_id)[-1].reason) == ("requeued", "by hand")
    lease = claimed(store, store.release(QUEUE, op=op())[0])
    assert (lease.attempt, lease.job.ticket) == (3, 3)


def test_a_requeue_from_the_start_gives_up_what_was_kept(store: Store) -> None:
    job_id = failed(store)
    assert requeue(store, job_id, from_start=True) is State.PENDING
    job = store.get(job_id)
    assert (job.step, job.checkpoint, job.checkpoint_before) == (0, None, None)
    assert (job.restarts, job.exact) == (1, True)
    assert (job.gpu_s_useful, job.gpu_s_wasted) == (0.0, 3.5)
    assert store.attempts(job_id)[0].spent == Spent(useful=0.0, wasted=3.5)


def test_a_cancelled_job_can_be_requeued(store: Store) -> None:
    job_id = submitted(store)
    store.cancel(job_id, reason="", op=op())
    assert requeue(store, job_id) is State.PENDING
    assert store.backlog() == {QUEUE: 1}


def test_a_requeue_from_the_start_of_what_kept_nothing_gives_nothing_up(store: Store) -> None:
    job_id = submitted(store)
    store.cancel(job_id, reason="", op=op())
    requeue(store, job_id, from_start=True)
    assert store.get(job_id).restarts == 0


def test_a_requeue_repeated_is_one(store: Store) -> None:
    job_id, token = failed(store), op()
    for _ in range(2):
        assert store.requeue(job_id, from_start=True, reason="", op=token) is State.PENDING
    assert store.get(job_id).restarts == 1
    assert kinds(store, job_id).count("requeued") == 1


@pytest.mark.parametrize("state", ["queued", "running", "succeeded", "expired"])
def test_no_other_job_is_requeued(store: Store, clock: Clock, state: str) -> None:
    make: dict[str, Callable[[], str]] = {
        "queued": lambda: queued(store).job_id,
        "running": lambda: running(store).job.id,
        "succeeded": lambda: ended(store),
        "expired": lambda: submitted(store, deadline=clock.now),
    }
    job_id = make[state]()
    store.wake(op=op())
    before = store.get(job_id)
    assert before.state == state
    with pytest.raises(errors.Refused, match=f"is {state}"):
        requeue(store, job_id)
    assert store.get(job_id) == before


def test_a_job_that_waits_already_is_left_as_it_is(store: Store, clock: Clock) -> None:
    for job_id in (submitted(store), submitted(store, not_before=clock.now + 9)):
        before = store.get(job_id)
        with pytest.raises(errors.Refused, match=f"is {before.state}"):
            requeue(store, job_id, from_start=True)
        assert store.get(job_id) == before
        assert kinds(store, job_id) == ["submitted"]


def test_an_unknown_job_is_not_requeued(store: Store) -> None:
    with pytest.raises(errors.JobNotFound):
        requeue(store, "nobody")


def test_a_requeue_forgets_the_crashes(store: Store, clock: Clock) -> None:
    lease = running(store, lease_s=3)
    clock.advance(3)
    reap(store, max_crashes=1)
    assert store.get(lease.job.id).state is State.FAILED
    requeue(store, lease.job.id)
    assert store.get(lease.job.id).crashes == 0
    claimed(store, store.release(QUEUE, op=op())[0], lease_s=3)
    clock.advance(3)
    reap(store, max_crashes=2)
    assert store.get(lease.job.id).state is State.PENDING


def test_a_deadline_no_longer_binds_after_a_requeue(store: Store, clock: Clock) -> None:
    job_id = submitted(store, deadline=clock.now + 5)
    store.cancel(job_id, reason="", op=op())
    clock.advance(10)
    requeue(store, job_id)
    store.wake(op=op())
    assert store.get(job_id).request.deadline == 0.0
    store.set_quotas({QUEUE: 1}, op=op())
    assert claimed(store, store.release(QUEUE, op=op())[0]).attempt == 1


def test_a_requeued_job_is_delivered_anew_but_for_its_chord(store: Store) -> None:
    """A chord counts each member once: what it counted stays counted."""
    job_id = failed(store)
    assert store.lock_delivery(job_id, token="busy", busy_s=60)
    for part in ("result", "chord", "links"):
        store.mark_part(job_id, f"{job_id}:{part}")
    requeue(store, job_id)
    assert store.delivered_parts(job_id) == {f"{job_id}:chord"}
    assert store.undelivered() == []
    finish(store, claimed(store, store.release(QUEUE, op=op())[0]))
    assert store.undelivered() == [job_id]
    assert store.lock_delivery(job_id, token="new", busy_s=60)


def test_a_delivered_failure_is_undelivered_again_at_its_new_end(store: Store) -> None:
    job_id = failed(store)
    assert store.mark_delivered(job_id, names=[job_id], token="t")
    requeue(store, job_id)
    assert not store.get(job_id).delivered
    finish(store, claimed(store, store.release(QUEUE, op=op())[0]))
    assert (store.undelivered(), store.get(job_id).delivered) == ([job_id], False)


def test_keys_and_names_of_a_requeued_job_live_on(store: Store, clock: Clock) -> None:
    job_id = failed(store, idempotency_key="k")
    store.submit(new_job("twin", idempotency_key="k", canvas={"n": 1}), op=op(), alias=True)
    requeue(store, job_id)
    clock.advance(2 * RETENTION_S)
    assert store.get("twin").state is State.PENDING
    assert store.aliases(job_id) == {"twin": {"n": 1}}
    assert store.submit(new_job(idempotency_key="k"), op=op()).job_id == job_id
    assert [job.id for job in store.list_jobs().jobs] == [job_id]
    assert len(store.attempts(job_id)) == 2


def test_every_key_of_a_requeued_job_loses_its_ttl(
    redis_store: RedisStore, valkey: Valkey, prefix: str
) -> None:
    raw, keys = valkey.client(), Keys(prefix)
    job_id = failed(redis_store, tenant="a:b", idempotency_key="k")
    redis_store.submit(new_job("twin", tenant="a:b", idempotency_key="k"), op=op(), alias=True)
    redis_store.mark_part(job_id, f"{job_id}:chord")
    own = [keys.job(job_id), keys.events(job_id), keys.attempts(job_id), keys.aliases(job_id)]
    own += [keys.delivered(job_id), keys.alias("twin"), keys.idem("a:b", "k")]
    assert all(raw.ttl(key) > 0 for key in own)
    requeue(redis_store, job_id)
    assert {raw.ttl(key) for key in own} == {-1}
    assert raw.zcard(keys.ended()) == 0
    redis_store.cancel(job_id, reason="", op=op())
    assert all(raw.ttl(key) > 0 for key in own)


# -- erase


def test_an_erased_job_keeps_no_prompt_film_or_checkpoint(store: Store, clock: Clock) -> None:
    job_id = failed(store, prompt="my secret", negative_prompt="none of that")
    token = op()
    for _ in range(2):
        store.erase(job_id, op=token)
    job = store.get(job_id)
    assert (job.request.prompt, job.request.negative_prompt, job.request.seed) == ("", "", 7)
    assert (job.film, job.manifest, job.checkpoint, job.checkpoint_before) == ("", "", None, None)
    assert (job.erased, job.state) == (True, State.FAILED)
    assert "secret" not in repr(job)
    assert store.erasing() == {job_id: clock.now}
    assert kinds(store, job_id).count("erased") == 1


def test_erase_answers_what_is_to_go(store: Store) -> None:
    """Who erases deletes the objects that the record named."""
    job_id = ended(store)
    before = store.get(job_id)
    assert store.erase(job_id, op=op()) == before
    assert before.film
    after = store.get(job_id)
    assert (after.film, after.manifest, after.state) == ("", "", State.SUCCEEDED)


def test_objects_are_owed_until_they_are_gone(store: Store, clock: Clock) -> None:
    first = ended(store)
    store.erase(first, op=op())
    clock.advance(1.5)
    second = ended(store)
    store.erase(second, op=op())
    assert store.erasing() == {first: clock.now - 1.5, second: clock.now}
    for _ in range(2):
        store.erased(first)
    assert store.erasing() == {second: clock.now}


def test_an_erased_job_is_not_made_again(store: Store) -> None:
    job_id = failed(store)
    store.erase(job_id, op=op())
    with pytest.raises(errors.Refused, match="was erased"):
        requeue(store, job_id)
    assert store.get(job_id).state is State.FAILED


def test_only_an_ended_job_is_erased(store: Store) -> None:
    lease = running(store)
    with pytest.raises(errors.Refused, match="is running"):
        store.erase(lease.job.id, op=op())
    with pytest.raises(errors.JobNotFound):
        store.erase("nobody", op=op())
    assert store.get(lease.job.id).request.prompt
    assert store.erasing() == {}
    assert renew(store, lease) == ""


# -- orders about GPUs

CORDONED = GpuOrder("cordoned", who="ann", why="fan")


def test_an_order_is_kept_whether_its_gpu_lives_or_not(store: Store, clock: Clock) -> None:
    token = op()
    for _ in range(2):
        store.order_gpu(GPU.name, CORDONED, op=token)
    since = clock.now
    store.beat_gpu(GPU, ttl_s=10)
    clock.advance(1e6)
    store.drop_gpu(GPU.name)
    assert store.gpu_order(GPU.name) == replace(CORDONED, since=since)
    assert store.gpu_orders() == {GPU.name: replace(CORDONED, since=since)}


def test_an_order_replaces_the_one_before(store: Store, clock: Clock) -> None:
    store.order_gpu("g", CORDONED, op=op())
    clock.advance(5)
    draining = GpuOrder("draining", who="bob", why="", give_up_at=clock.now + 900)
    store.order_gpu("g", draining, op=op())
    assert store.gpu_order("g") == replace(draining, since=clock.now)


def test_an_order_that_is_lifted_is_gone(store: Store) -> None:
    store.order_gpu("b", CORDONED, op=op())
    store.order_gpu("a", CORDONED, op=op())
    assert list(store.gpu_orders()) == ["a", "b"]
    for _ in range(2):
        store.order_gpu("a", None, op=op())
    assert store.gpu_order("a") is None
    assert list(store.gpu_orders()) == ["b"]


def test_a_word_that_no_worker_knows_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="asleep"):
        store.order_gpu("g", GpuOrder("asleep", "", ""), op=op())
    assert store.gpu_orders() == {}


@pytest.mark.parametrize("action", ["cordoned", "draining"])
def test_a_cordoned_worker_gets_nothing_and_loses_no_job(store: Store, action: str) -> None:
    ticket, later = queued(store), submitted(store)
    store.order_gpu("w", GpuOrder(action, "ann", "fan"), op=op())
    token = op()
    for _ in range(2):
        answer = store.claim(ticket, worker="w", token=token, lease_s=5)
        assert answer == ClaimRefused("cordoned")
        assert store.events(ticket.job_id)[-1].reason.endswith(f" is {action}")
    assert store.backlog_jobs(QUEUE) == [ticket.job_id, later]
    assert kinds(store, ticket.job_id)[-1] == "returned"
    new = store.release(QUEUE, op=op())[0]
    assert claimed(store, new, worker="other").attempt == 1
    store.order_gpu("w", None, op=op())
    third = queued(store)
    assert claimed(store, third, worker="w").attempt == 1


def test_a_job_that_runs_on_a_cordoned_gpu_goes_on(store: Store) -> None:
    lease = running(store)
    store.order_gpu(lease.job.worker, CORDONED, op=op())
    assert renew(store, lease) == ""
    assert finish(store, lease, Outcome(State.SUCCEEDED))
