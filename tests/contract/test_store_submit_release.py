"""Submitting and releasing in one step, as applications do: one trip to the store less."""

from __future__ import annotations

import pytest

from callsheet.errors import IdempotencyConflict
from callsheet.records.jobs import Submitted, Ticket
from callsheet.records.states import State
from callsheet.store.protocol import Store
from tests.support.clock import Clock
from tests.support.jobs import QUEUE, kinds, new_job, op, submitted


def open_gates(store: Store, quota: int = 9) -> None:
    store.set_quotas({QUEUE: quota}, op=op())


def test_a_new_job_gets_its_ticket_in_the_same_step(store: Store) -> None:
    open_gates(store)
    assert store.submit(new_job("film"), op=op(), release=True) == Submitted(
        "film", created=True, tickets=(Ticket("film", 1, QUEUE),)
    )
    assert (store.get("film").state, store.published(), store.backlog()) == (State.QUEUED, {QUEUE: 1}, {})
    assert kinds(store, "film") == ["submitted", "released"]


def test_unasked_nothing_is_released(store: Store) -> None:
    open_gates(store)
    assert store.submit(new_job("film"), op=op()).tickets == ()
    assert store.get("film").state is State.PENDING


def test_the_quota_holds_and_the_front_goes_first(store: Store) -> None:
    first = submitted(store)
    open_gates(store, 1)
    answer = store.submit(new_job("second"), op=op(), release=True)
    assert [ticket.job_id for ticket in answer.tickets] == [first]
    assert store.get("second").state is State.PENDING
    assert store.submit(new_job("third"), op=op(), release=True).tickets == ()


def test_every_ticket_that_has_room_comes_along(store: Store) -> None:
    ids = [submitted(store) for _ in range(3)]
    open_gates(store)
    answer = store.submit(new_job("last"), op=op(), release=True)
    assert [ticket.job_id for ticket in answer.tickets] == [*ids, "last"]


def test_another_queue_s_quota_releases_nothing(store: Store) -> None:
    store.set_quotas({"pro.h100": 9}, op=op())
    assert store.submit(new_job(), op=op(), release=True).tickets == ()


def test_a_repeat_answers_the_same_tickets_and_releases_no_more(store: Store) -> None:
    open_gates(store)
    token, job = op(), new_job("film")
    first = store.submit(job, op=token, release=True)
    waiting = submitted(store)
    assert store.submit(job, op=token, release=True) == first
    assert store.get(waiting).state is State.PENDING
    assert store.get("film").ticket == 1


def test_a_repeat_of_a_submit_that_released_nothing_stays_so(store: Store) -> None:
    token, job = op(), new_job("film")
    first = store.submit(job, op=token, release=True)
    open_gates(store)
    assert store.submit(job, op=token, release=True) == first == Submitted("film", created=True)
    assert store.get("film").state is State.PENDING


def test_a_job_that_must_wait_releases_nothing(store: Store, clock: Clock) -> None:
    waiting = submitted(store)
    open_gates(store)
    held = new_job("held", not_before=clock.now + 60)
    assert store.submit(held, op=op(), release=True) == Submitted("held", created=True)
    assert store.get(waiting).state is State.PENDING


def test_a_known_key_releases_nothing(store: Store) -> None:
    submitted(store, "film", idempotency_key="k")
    open_gates(store)
    again = store.submit(new_job(idempotency_key="k"), op=op(), release=True)
    assert again == Submitted("film", created=False)
    with pytest.raises(IdempotencyConflict):
        store.submit(new_job(idempotency_key="k", body="other"), op=op(), release=True)
    assert store.get("film").state is State.PENDING


def test_an_overdue_job_in_front_expires_and_the_new_one_goes(store: Store, clock: Clock) -> None:
    late = submitted(store, deadline=clock.now + 5)
    open_gates(store, 1)
    clock.advance(6)
    answer = store.submit(new_job("film"), op=op(), release=True)
    assert [ticket.job_id for ticket in answer.tickets] == ["film"]
    assert store.get(late).state is State.EXPIRED
