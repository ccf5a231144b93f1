"""Contract of both stores: jobs that are sent to one worker, and strict jobs, which wait for their build."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from callsheet.records.jobs import Ticket
from callsheet.records.states import State
from callsheet.routing.queues import direct_queue
from callsheet.store.protocol import ClaimRefused, Lease, Store
from tests.support.clock import Clock
from tests.support.jobs import (
    FAILURE,
    QUEUE,
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

DIRECT = direct_queue("w")


def assign(store: Store, job_id: str, queue: str = DIRECT) -> Ticket | None:
    return store.assign(job_id, queue, reason="a GPU was freed for it", op=op())


def claim(store: Store, ticket: Ticket, *, build: str = "") -> Lease | ClaimRefused:
    return store.claim(ticket, worker="w", token=op(), lease_s=5, build=build)


def hand_back(store: Store, lease: Lease) -> None:
    assert store.hand_back(lease.job.id, lease.attempt, lease.token, reason="yields", op=op())


def parked(store: Store) -> str:
    """A job that waits for build b1 with step 4 kept."""
    lease = running(store, reproducible="strict")
    keep(store, lease, step=4, build="b1")
    hand_back(store, lease)
    return lease.job.id


# -- assign

WAITING: dict[str, tuple[Callable[[Store], str], int]] = {
    "pending": (submitted, 1),
    "queued": (lambda store: queued(store).job_id, 2),
    "parked": (parked, 2),
}


@pytest.mark.parametrize("state", WAITING)
def test_a_waiting_job_is_sent_to_one_worker(store: Store, clock: Clock, state: str) -> None:
    make, number = WAITING[state]
    job_id, token = make(store), op()
    clock.advance(1)
    for _ in range(2):
        ticket = store.assign(job_id, DIRECT, reason="freed", op=token)
        assert ticket == Ticket(job_id, number, DIRECT)
    assert ticket is not None
    job = store.get(job_id)
    assert (job.state, job.home, job.queue, job.queued_at) == (State.QUEUED, DIRECT, QUEUE, clock.now)
    assert (store.backlog(), store.published(), store.parked()) == ({}, {DIRECT: 1}, [])
    assert store.published_jobs(DIRECT) == [job_id]
    assert (kinds(store, job_id)[-1], store.events(job_id)[-1].reason) == ("assigned", "freed")
    lease = claim(store, ticket, build=job.build)
    assert isinstance(lease, Lease)
    assert (lease.job.home, store.published()) == ("", {})


def test_the_ticket_of_before_is_worthless(store: Store) -> None:
    old = queued(store)
    new = assign(store, old.job_id)
    assert claim(store, old) == ClaimRefused("stale-ticket")
    assert new is not None
    assert claimed(store, new).attempt == 1


def test_a_job_sent_elsewhere_leaves_room_in_its_queue(store: Store) -> None:
    first, second = queued(store), submitted(store)
    store.set_quotas({QUEUE: 1}, op=op())
    assert store.release(QUEUE, op=op()) == []
    assign(store, first.job_id)
    assert [ticket.job_id for ticket in store.release(QUEUE, op=op())] == [second]


@pytest.mark.parametrize("state", ["held", "running", "succeeded", "unknown", "overdue"])
def test_what_does_not_wait_is_not_sent(store: Store, clock: Clock, state: str) -> None:
    make: dict[str, Callable[[], str]] = {
        "held": lambda: submitted(store, not_before=clock.now + 9),
        "running": lambda: running(store).job.id,
        "succeeded": lambda: ended(store),
        "unknown": lambda: "nobody",
        "overdue": lambda: submitted(store, deadline=clock.now),
    }
    job_id = make[state]()
    before = store.get_many([job_id])
    assert assign(store, job_id) is None
    assert store.get_many([job_id]) == before
    assert DIRECT not in store.published()


def test_a_job_that_ends_in_a_direct_queue_leaves_it(store: Store) -> None:
    job_id = submitted(store)
    ticket = assign(store, job_id)
    store.cancel(job_id, reason="", op=op())
    assert store.published() == {}
    assert ticket is not None
    assert claim(store, ticket) == ClaimRefused("not-queued")


def test_an_adopted_job_leaves_the_direct_queue(store: Store) -> None:
    """A fail-over forgot the claim of the ticket there."""
    job_id = submitted(store)
    assign(store, job_id)
    lease = Lease(store.get(job_id), attempt=1, token="mine", until=0.0)
    assert renew(store, lease) == ""
    assert (store.published(), store.get(job_id).home) == ({}, "")


# -- healing direct queues


def test_a_direct_queue_is_healed_into_the_job_s_own_backlog(store: Store, clock: Clock) -> None:
    job_id, later = submitted(store), submitted(store)
    ticket = assign(store, job_id)
    clock.advance(2)
    assert store.heal(DIRECT, older_s=3.0, op=op()) == []
    assert store.heal(DIRECT, older_s=2.0, reason="its worker is gone", op=op()) == [job_id]
    assert store.backlog_jobs(QUEUE) == [job_id, later]
    assert (store.published(), store.get(job_id).home) == ({}, "")
    assert store.events(job_id)[-1].reason == "its worker is gone"
    store.set_quotas({QUEUE: 1}, op=op())
    (new,) = store.release(QUEUE, op=op())
    assert (new.number, new.queue) == (2, QUEUE)
    assert ticket is not None
    assert claim(store, ticket) == ClaimRefused("stale-ticket")


def test_a_direct_queue_of_a_strict_job_is_healed_into_its_wait(store: Store) -> None:
    job_id = parked(store)
    assign(store, job_id)
    assert store.heal(DIRECT, older_s=0.0, op=op()) == [job_id]
    assert [job.id for job in store.parked()] == [job_id]
    assert store.backlog() == {}


# -- strict jobs


def test_a_strict_job_waits_for_its_build_and_no_time_wakes_it(store: Store, clock: Clock) -> None:
    job_id = parked(store)
    job = store.get(job_id)
    assert (job.state, job.build, job.strict) == (State.HELD, "b1", True)
    assert [found.id for found in store.parked()] == [job_id]
    clock.advance(1e8)
    assert store.wake(op=op()) == []
    assert store.get(job_id).state is State.HELD
    assert store.release(QUEUE, op=op()) == []


def test_a_job_that_is_held_for_its_time_is_not_parked(store: Store, clock: Clock) -> None:
    job_id = submitted(store, not_before=clock.now + 9, reproducible="strict")
    assert store.get(job_id).state is State.HELD
    assert store.parked() == []


def test_another_build_is_refused_and_the_job_waits_on(store: Store) -> None:
    job_id = parked(store)
    ticket, token = assign(store, job_id), op()
    assert ticket is not None
    for _ in range(2):
        answer = store.claim(ticket, worker="w", token=token, lease_s=5, build="b2")
        assert answer == ClaimRefused("other-build")
    assert [job.id for job in store.parked()] == [job_id]
    assert (kinds(store, job_id)[-1], store.events(job_id)[-1].reason) == (
        "held",
        "waits for a worker of build b1",
    )
    ticket = assign(store, job_id)
    assert ticket is not None
    assert isinstance(claim(store, ticket, build="b1"), Lease)


@pytest.mark.parametrize("end", ["handed back", "lost", "reaped", "requeued"])
def test_a_strict_job_is_parked_after_each_end_of_an_attempt(store: Store, clock: Clock, end: str) -> None:
    lease = running(store, lease_s=3, reproducible="strict")
    keep(store, lease, step=4, build="b1")
    if end == "handed back":
        hand_back(store, lease)
    elif end == "lost":
        store.lose(lease.job.id, 1, lease.token, reason="", max_crashes=3, op=op())
    elif end == "reaped":
        clock.advance(3)
        reap(store)
    else:
        finish(store, lease, FAILURE)
        assert store.requeue(lease.job.id, from_start=False, reason="", op=op()) is State.HELD
    assert [job.id for job in store.parked()] == [lease.job.id]
    assert store.backlog() == {}


def test_a_strict_job_that_gave_up_its_steps_may_run_anywhere(store: Store) -> None:
    job_id = parked(store)
    ticket = assign(store, job_id)
    assert ticket is not None
    lease = claim(store, ticket, build="b1")
    assert isinstance(lease, Lease)
    assert store.start_from(job_id, 2, lease.token, step=0, exact=True, reason="corrupt", op=op())
    hand_back(store, lease)
    assert (store.get(job_id).state, store.get(job_id).build) == (State.PENDING, "")
    assert store.backlog_jobs(QUEUE) == [job_id]


def test_a_strict_job_without_kept_steps_may_run_anywhere(store: Store) -> None:
    lease = running(store, reproducible="strict")
    hand_back(store, lease)
    (ticket,) = store.release(QUEUE, op=op())
    assert isinstance(claim(store, ticket, build="b2"), Lease)


def test_a_parked_job_can_be_cancelled(store: Store) -> None:
    job_id = parked(store)
    assert store.cancel(job_id, reason="", op=op()) is State.CANCELLED
    assert store.parked() == []


def test_a_job_of_another_queue_keeps_its_own_when_it_is_sent(store: Store) -> None:
    """The worker serves it though it does not subscribe to that queue."""
    job_id = store.submit(new_job(queue="pro.a100", tier="pro"), op=op()).job_id
    ticket = assign(store, job_id)
    assert ticket is not None
    hand_back(store, claimed(store, ticket))
    assert store.backlog_jobs("pro.a100") == [job_id]


# -- the seat of a victim: both at once


def victim_of(store: Store) -> Lease:
    return running(store, job_id="victim")


def test_the_victim_is_told_and_the_heir_is_sent_in_one_step(store: Store) -> None:
    lease, job_id = victim_of(store), submitted(store)
    ticket = store.assign(
        job_id, DIRECT, reason="pro waits", ticket=0, victim=("victim", lease.attempt), op=op()
    )
    assert ticket == Ticket(job_id, 1, DIRECT)
    assert store.get("victim").order == "yield"
    assert (kinds(store, "victim")[-1], store.events("victim")[-1].reason) == ("ordered", "pro waits")


VAIN: dict[str, Callable[[Store, str], dict[str, object]]] = {
    "the victim ended": lambda store, _: {"victim": (ended(store), 1)},
    "nobody knows the victim": lambda store, _: {"victim": ("nobody", 1)},
    "another attempt of it runs": lambda store, _: {"victim": ("victim", 2)},
    "it yields for another": lambda store, _: {
        "victim": ("victim", 1) if store.order("victim", 1, "yield", reason="", op=op()) else None
    },
    "the heir was sent elsewhere": lambda store, job_id: {
        "victim": ("victim", 1),
        "ticket": store.get(job_id).ticket - (assign(store, job_id, direct_queue("v")) is None),
    },
}


@pytest.mark.parametrize("why", VAIN)
def test_a_seat_in_vain_changes_nothing(store: Store, why: str) -> None:
    """Neither the heir nor the victim, whatever changed since the caller looked."""
    victim_of(store)
    job_id = submitted(store)
    changes = VAIN[why](store, job_id)
    changes.setdefault("ticket", store.get(job_id).ticket)
    before = store.get_many([job_id, "victim"])
    told = kinds(store, job_id), kinds(store, "victim")
    assert store.assign(job_id, DIRECT, reason="pro waits", op=op(), **changes) is None  # type: ignore[arg-type]
    assert store.get_many([job_id, "victim"]) == before
    assert (kinds(store, job_id), kinds(store, "victim")) == told
    assert DIRECT not in store.published()
