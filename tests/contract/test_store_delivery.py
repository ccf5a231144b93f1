"""Contract of both stores: aliases and the delivery of outcomes."""

from __future__ import annotations

import pytest

from callsheet import errors
from callsheet.records.states import State
from callsheet.store.protocol import Store
from tests.support.clock import Clock
from tests.support.jobs import ended, finish, kinds, new_job, op, reap, running, submitted

# -- aliases


def alias(store: Store, name: str, *, key: str = "k", canvas: object = None) -> str:
    answer = store.submit(new_job(name, idempotency_key=key, canvas=canvas), op=op(), alias=True)
    assert not answer.created
    return answer.job_id


def test_an_alias_names_the_first_job(store: Store) -> None:
    first = submitted(store, idempotency_key="k", canvas={"own": 1})
    assert alias(store, "twin", canvas={"chord": {"n": 2}, "links": []}) == first
    assert store.resolve("twin") == store.resolve(first) == first
    assert store.get("twin") == store.get(first)
    assert store.get_many(["twin"]) == [None]
    assert store.aliases(first) == {"twin": {"chord": {"n": 2}, "links": []}}
    assert [event.reason for event in store.events("twin")] == ["", "twin"]


def test_an_alias_keeps_its_first_canvas(store: Store) -> None:
    first = submitted(store, idempotency_key="k")
    alias(store, "twin", canvas={"n": 1})
    alias(store, "twin", canvas={"n": 2})
    assert store.aliases(first) == {"twin": {"n": 1}}
    assert kinds(store, first) == ["submitted", "aliased"]


def test_the_first_id_is_no_alias_of_itself(store: Store) -> None:
    first = submitted(store, idempotency_key="k")
    assert alias(store, first) == first
    assert store.aliases(first) == {}


def test_without_a_known_key_alias_is_a_plain_submit(store: Store) -> None:
    assert store.submit(new_job("a", idempotency_key="k"), op=op(), alias=True).created
    assert store.submit(new_job("b"), op=op(), alias=True).created
    assert store.aliases("a") == {}


def test_an_alias_of_another_body_is_refused(store: Store) -> None:
    submitted(store, idempotency_key="k")
    with pytest.raises(errors.IdempotencyConflict):
        store.submit(new_job("twin", idempotency_key="k", body="other"), op=op(), alias=True)
    with pytest.raises(errors.JobNotFound):
        store.resolve("twin")


def test_the_name_of_an_alias_is_taken(store: Store) -> None:
    first = submitted(store, idempotency_key="k")
    alias(store, "twin")
    assert store.submit(new_job("twin"), op=op()).job_id == first
    with pytest.raises(errors.IdempotencyConflict):
        store.submit(new_job("twin", body="other"), op=op())


def test_cancel_by_an_alias_cancels_the_job(store: Store) -> None:
    first = submitted(store, idempotency_key="k")
    alias(store, "twin")
    assert store.cancel("twin", reason="", op=op()) is State.CANCELLED
    assert store.get(first).state is State.CANCELLED


@pytest.mark.parametrize("name", ["nobody", "job:x", "", "bad name"])
def test_an_unknown_name(store: Store, name: str) -> None:
    for look in (store.resolve, store.get, store.events):
        with pytest.raises(errors.JobNotFound, match="never submitted"):
            look(name)
    assert store.aliases(name) == {}
    assert store.delivered_parts(name) == frozenset()


# -- delivery


def deliver(store: Store, job_id: str) -> bool:
    return store.mark_delivered(job_id, names=[job_id, *store.aliases(job_id)], token="t")


def test_an_ended_job_waits_until_it_is_delivered(store: Store) -> None:
    job_id = ended(store)
    assert store.undelivered() == [job_id]
    for _ in range(2):
        assert deliver(store, job_id)
    assert store.undelivered() == []
    assert store.get(job_id).delivered


def test_an_active_job_is_not_delivered(store: Store) -> None:
    job_id = running(store).job.id
    assert not store.lock_delivery(job_id, token="t", busy_s=5)
    assert not deliver(store, job_id)
    assert not store.get(job_id).delivered


def test_one_delivers_at_a_time(store: Store, clock: Clock) -> None:
    job_id = ended(store)
    assert store.lock_delivery(job_id, token="a", busy_s=5)
    assert store.lock_delivery(job_id, token="a", busy_s=5)
    assert not store.lock_delivery(job_id, token="b", busy_s=5)
    clock.advance(5)
    assert store.lock_delivery(job_id, token="b", busy_s=5)
    assert not store.lock_delivery(job_id, token="a", busy_s=5)


def test_nothing_is_locked_once_it_is_delivered(store: Store) -> None:
    job_id = ended(store)
    assert store.lock_delivery(job_id, token="t", busy_s=5)
    deliver(store, job_id)
    assert not store.lock_delivery(job_id, token="u", busy_s=5)
    assert not store.lock_delivery("nobody", token="u", busy_s=5)


def test_delivered_parts_add_up(store: Store) -> None:
    job_id = running(store).job.id
    store.mark_part(job_id, f"{job_id}:result")
    store.mark_part(job_id, f"{job_id}:result")
    store.mark_part(job_id, f"{job_id}:chord")
    assert store.delivered_parts(job_id) == {f"{job_id}:result", f"{job_id}:chord"}
    store.mark_part("nobody", "nobody:result")
    assert store.delivered_parts("nobody") == frozenset()


def test_an_alias_that_came_late_is_not_left_out(store: Store) -> None:
    job_id = ended(store, idempotency_key="k")
    assert store.lock_delivery(job_id, token="t", busy_s=5)
    alias(store, "twin")
    assert not store.mark_delivered(job_id, names=[job_id], token="t")
    assert not store.mark_delivered(job_id, names=["twin"], token="t")
    assert store.undelivered() == [job_id]
    assert not store.lock_delivery(job_id, token="u", busy_s=5)
    assert store.mark_delivered(job_id, names=iter([job_id, "twin"]), token="t")
    assert store.undelivered() == []


def test_an_alias_of_a_delivered_job_is_delivered_too(store: Store) -> None:
    job_id = ended(store, idempotency_key="k")
    deliver(store, job_id)
    alias(store, "twin")
    assert store.undelivered() == [job_id]
    assert not store.get(job_id).delivered
    assert store.lock_delivery(job_id, token="t", busy_s=5)
    assert deliver(store, job_id)
    alias(store, "twin")
    assert store.undelivered() == []


def test_undelivered_is_bounded(store: Store) -> None:
    ids = {ended(store) for _ in range(4)}
    found = store.undelivered(limit=3)
    assert len(set(found)) == 3
    assert set(found) < ids


def test_every_end_is_to_be_delivered(store: Store, clock: Clock) -> None:
    lease = running(store, lease_s=1)
    late = submitted(store, queue="pro.a100", deadline=clock.now + 1)
    gone = submitted(store)
    store.cancel(gone, reason="", op=op())
    clock.advance(1)
    reap(store, max_crashes=1)
    store.wake(op=op())
    assert set(store.undelivered()) == {lease.job.id, late, gone}
    assert not finish(store, lease)
