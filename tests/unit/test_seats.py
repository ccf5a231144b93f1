"""Controllers that choose a job's very worker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from callsheet.beat import controllers, rebalancer, seats
from callsheet.beat.seats import STRICT_S, VAIN_S
from callsheet.beat.tick import tick
from callsheet.records.gpus import Gpu, GpuOrder
from callsheet.records.states import State
from callsheet.routing.queues import direct_queue
from callsheet.store.protocol import Lease
from tests.support.fleet import gpu
from tests.support.jobs import claimed, keep, new_job, op
from tests.support.office import Office

QUEUES = ("pro.a100", "free.a100")


@pytest.fixture
def office() -> Office:
    return Office()


def join(office: Office, index: int = 0, *, build: str = "") -> Gpu:
    """A live a100."""
    one = replace(gpu("a100", index, queues=QUEUES), build=build)
    office.store.beat_gpu(one, ttl_s=1e6)
    office.rebalance()
    return one


def submit(office: Office, tier: str, **changes: Any) -> str:
    """A job of a minute."""
    job = new_job(queue=f"{tier}.a100", tier=tier, work_s=60.0, **changes)
    office.store.submit(job, op=op())
    controllers.release_all(office.hands)
    return job.id


def run_on(office: Office, one: Gpu, tier: str = "free", **changes: Any) -> Lease:
    """A job that this GPU has claimed."""
    job_id = submit(office, tier, **changes)
    ticket = next(t for t in office.broker[f"{tier}.a100"] if t.job_id == job_id)
    office.broker[f"{tier}.a100"].remove(ticket)
    return claimed(office.store, ticket, worker=one.name, lease_s=1e6)


def test_a_waiting_pro_job_gets_a_busy_gpu_and_its_direct_queue(office: Office) -> None:
    one = join(office)
    victim = run_on(office, one)
    heir = submit(office, "pro")
    assert rebalancer.seat_urgent(office.hands) == 1
    assert office.store.get(victim.job.id).order == "yield"
    assert office.signals == [(f"{victim.job.id}.1", one.name)]
    (ticket,) = office.broker[direct_queue(one.name)]
    assert (ticket.job_id, ticket.number) == (heir, 2)
    assert office.store.get(heir).home == direct_queue(one.name)
    assert rebalancer.seat_urgent(office.hands) == 0  # once is enough


def test_the_heirs_old_ticket_is_worthless(office: Office) -> None:
    one = join(office)
    run_on(office, one)
    heir = submit(office, "pro")
    old = next(t for t in office.broker["pro.a100"] if t.job_id == heir)
    rebalancer.seat_urgent(office.hands)
    assert not isinstance(office.store.claim(old, worker="x", token=op(), lease_s=3), Lease)


def test_an_idle_gpu_takes_it_and_nobody_yields(office: Office) -> None:
    run_on(office, join(office))
    idle = join(office, 1)
    heir = submit(office, "pro")
    assert rebalancer.seat_urgent(office.hands) == 1
    assert office.store.get(heir).home == direct_queue(idle.name)
    assert office.signals == []


def test_a_cordoned_gpu_is_no_seat(office: Office) -> None:
    one = join(office)
    run_on(office, one)
    office.store.order_gpu(one.name, GpuOrder("cordoned", "me", "dust"), op=op())
    submit(office, "pro")
    assert rebalancer.seat_urgent(office.hands) == 0


def test_who_asks_while_it_runs_gets_another_look(office: Office) -> None:
    one, other = join(office), join(office, 1)
    run_on(office, one)
    run_on(office, other)
    submit(office, "pro")

    def publish(ticket: object) -> bool:
        if len(office.signals) == 1:  # in the midst of the first look a second job comes, and asks
            submit(office, "pro")
            assert tick(office.hands, "rebalance", clock=office.clock) == {}
            office.clock.advance(0.01)
        return office.publish(ticket)  # type: ignore[arg-type]

    hands = replace(office.hands, publish=publish)
    office.clock.advance(0.01)

    tick(hands, "rebalance", clock=office.clock)
    assert len(office.signals) == 2


def test_a_promise_to_a_dead_worker_goes_back_at_once(office: Office) -> None:
    one = join(office)
    run_on(office, one)
    heir = submit(office, "pro")
    rebalancer.seat_urgent(office.hands)
    office.store.drop_gpu(one.name)
    assert seats.take_back(office.hands) == 1
    assert office.state(heir) is State.PENDING


def test_a_promise_goes_back_when_its_worker_goes_on(office: Office) -> None:
    """The victim declined: it could not be saved."""
    one = join(office)
    victim = run_on(office, one)
    heir = submit(office, "pro")
    rebalancer.seat_urgent(office.hands)
    assert seats.take_back(office.hands) == 0
    office.store.decline(victim.job.id, 1, victim.token, reason="no storage", op=op())
    office.clock.advance(VAIN_S + 0.1)
    assert seats.take_back(office.hands) == 1
    assert office.state(heir) is State.PENDING


def test_a_direct_ticket_that_the_broker_lost_is_healed(office: Office) -> None:
    one = join(office)
    run_on(office, one)
    heir = submit(office, "pro")
    rebalancer.seat_urgent(office.hands)
    office.broker.clear()
    office.clock.advance(6.0)
    assert seats.take_back(office.hands) == 1
    assert office.state(heir) is State.PENDING


def park(office: Office, one: Gpu, build: str) -> str:
    """A strict job that was saved on this build and handed back."""
    lease = run_on(office, one, reproducible="strict")
    keep(office.store, lease, step=3, build=build)
    office.store.hand_back(lease.job.id, 1, lease.token, reason="test", op=op())
    return lease.job.id


def test_a_strict_job_waits_for_a_worker_of_its_build(office: Office) -> None:
    job_id = park(office, join(office, build="b1"), "b1")
    office.store.drop_gpu("a100-0@node")
    join(office, 1, build="b2")
    assert office.state(job_id) is State.HELD
    for _ in range(3):
        office.clock.advance(1e4)
        controllers.wake(office.hands)
        assert seats.match(office.hands) == 0
    match = join(office, 2, build="b1")
    assert seats.match(office.hands) == 1
    (ticket,) = office.broker[direct_queue(match.name)]
    lease = office.store.claim(ticket, worker=match.name, token=op(), lease_s=3, build="b1")
    assert isinstance(lease, Lease)
    assert (lease.job.checkpoint is not None, lease.job.build) == (True, "b1")


def test_an_idle_worker_of_the_build_is_preferred(office: Office) -> None:
    job_id = park(office, join(office, build="b1"), "b1")
    run_on(office, join(office, build="b1"))
    idle = join(office, 1, build="b1")
    assert seats.match(office.hands) == 1
    assert office.store.get(job_id).home == direct_queue(idle.name)


def test_a_strict_job_waits_long_for_the_only_worker_of_its_build(office: Office) -> None:
    one = join(office, build="b1")
    job_id = park(office, one, "b1")
    run_on(office, one)
    assert seats.match(office.hands) == 1
    office.clock.advance(VAIN_S + 1)
    assert seats.take_back(office.hands) == 0
    office.clock.advance(STRICT_S)
    assert seats.take_back(office.hands) == 1
    assert office.state(job_id) is State.HELD


def test_another_build_may_not_claim_a_strict_job(office: Office) -> None:
    one = join(office, build="b1")
    job_id = park(office, one, "b1")
    seats.match(office.hands)
    (ticket,) = office.broker[direct_queue(one.name)]
    refused = office.store.claim(ticket, worker="other", token=op(), lease_s=3, build="b2")
    assert getattr(refused, "reason", "") == "other-build"
    assert office.state(job_id) is State.HELD
