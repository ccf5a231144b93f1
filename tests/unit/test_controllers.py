"""Each controller's round, and the tick that runs them all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from callsheet.beat import controllers
from callsheet.beat.patience import GATHER_S, RETURN_S
from callsheet.beat.tick import tick
from callsheet.errors import Unreachable
from callsheet.records.gpus import GpuOrder
from callsheet.records.jobs import Ticket
from callsheet.records.states import State
from callsheet.store.protocol import Store
from tests.support.jobs import ended, new_job, op, queued, running, submitted
from tests.support.office import Office


@pytest.fixture
def office() -> Office:
    return Office()


def test_release_publishes_for_live_workers_and_not_more_than_they_take_soon(office: Office) -> None:
    jobs = [submitted(office.store, queue="free.a100") for _ in range(5)]
    assert office.rebalance() == 0  # nobody serves it
    office.join("a100", queues=("free.a100",))
    assert office.rebalance() == 2  # one for its idle worker, one to spare
    assert [ticket.job_id for ticket in office.broker["free.a100"]] == jobs[:2]
    assert office.rebalance() == 0


def test_a_worker_that_left_gets_nothing_more(office: Office) -> None:
    office.join("a100", queues=("free.a100",))
    office.rebalance()
    office.clock.advance(11)
    submitted(office.store, queue="free.a100")
    assert office.rebalance() == 0


def test_no_ticket_counts_on_a_gpu_that_takes_nothing(office: Office) -> None:
    for index in range(2):
        office.join("a100", index=index, queues=("free.a100",))
    for _ in range(4):
        submitted(office.store, queue="free.a100")
    office.store.order_gpu("a100-0@node", GpuOrder("cordoned", "ann", "a fan is loud"), op=op())
    assert office.rebalance() == 2
    office.store.order_gpu("a100-1@node", GpuOrder("draining", "ann", "a fan is loud"), op=op())
    office.rebalance()
    assert office.store.release("free.a100", op=op()) == []  # also not by a submit or an attempt that ends
    assert len(office.broker["free.a100"]) == 2


def test_heal_finds_tickets_that_the_broker_lost(office: Office) -> None:
    office.join("a100", queues=("free.a100",))
    job = submitted(office.store, queue="free.a100")
    office.rebalance()
    office.broker.clear()  # celery purge
    assert controllers.heal(office.hands) == 0  # it may be on its way
    office.clock.advance(6)
    assert controllers.heal(office.hands) == 1
    assert office.state(job) is State.PENDING
    office.join("a100", queues=("free.a100",))
    office.rebalance()
    assert office.broker["free.a100"] == [Ticket(job, 2, "free.a100")]


def test_heal_leaves_a_paused_queue_alone(office: Office) -> None:
    office.join("a100", queues=("free.a100",))
    submitted(office.store, queue="free.a100")
    office.rebalance()
    for _ in range(10):
        office.clock.advance(60)
        assert controllers.heal(office.hands) == 0
    assert len(office.broker["free.a100"]) == 1


def test_reap_brings_back_what_died_with_its_worker(office: Office) -> None:
    lease = running(office.store, lease_s=3.0)
    for _ in range(3):
        assert controllers.reap(office.hands) == 0
        office.clock.advance(1.1)
    assert controllers.reap(office.hands) == 1
    assert office.state(lease.job.id) is State.PENDING


def test_reroute_moves_what_nobody_serves_to_the_class_that_came(office: Office) -> None:
    stranded = submitted(office.store, queue="pro.h200")
    office.join("a100", queues=("pro.a100", "free.a100"))
    assert controllers.reroute(office.hands) == 0  # its own class may be about to come
    office.clock.advance(GATHER_S)
    assert controllers.reroute(office.hands) == 1
    assert office.store.get(stranded).queue == "pro.a100"
    assert controllers.reroute(office.hands) == 0


def test_reroute_moves_nothing_to_a_gpu_that_takes_nothing(office: Office) -> None:
    stranded = submitted(office.store, queue="pro.h200")
    office.join("a100", queues=("pro.a100",))
    office.store.order_gpu("a100-0@node", GpuOrder("cordoned", "ann", "a fan is loud"), op=op())
    for _ in range(3):
        assert controllers.reroute(office.hands) == 0
        office.clock.advance(GATHER_S)
        office.join("a100", queues=("pro.a100",))
    assert office.store.get(stranded).queue == "pro.h200"


def test_reroute_leaves_a_job_that_no_live_gpu_holds(office: Office) -> None:
    job = new_job(queue="free.h200")
    office.store.submit(job, op=op())
    office.join("a100", vram_gib=1, queues=("free.a100-40g",))
    before = office.store.get(job.id).queue
    big = office.store.get(job.id).need_gib
    assert big > 0
    for _ in range(3):
        office.clock.advance(GATHER_S)
        office.join("a100", vram_gib=1, queues=("free.a100-40g",))
        controllers.reroute(office.hands)
    assert office.store.get(job.id).queue in (before, "free.a100-40g")


def test_a_worker_that_comes_back_finds_its_backlog(office: Office) -> None:
    job = submitted(office.store, queue="pro.h200")
    for second in range(120):
        office.join("h100")
        if not 20 <= second < 20 + RETURN_S / 2:  # its child crashed and loads torch
            office.join("h200")
        controllers.reroute(office.hands)
        office.clock.advance(1.0)
    assert office.store.get(job).queue == "pro.h200"


def test_a_worker_that_stays_away_gives_its_backlog_up(office: Office) -> None:
    job = submitted(office.store, queue="pro.h200")
    office.join("h200")
    controllers.reroute(office.hands)
    for _ in range(int(RETURN_S) + 15):
        office.clock.advance(1.0)
        office.join("h100")
        controllers.reroute(office.hands)
    assert office.store.get(job).queue == "pro.h100"


def test_tickets_of_a_queue_that_nobody_serves_any_more_move_too(office: Office) -> None:
    """Its only worker left in order right after the job's ticket was published."""
    office.join("h200")
    job = submitted(office.store, queue="free.h200")
    office.rebalance()
    controllers.reroute(office.hands)
    office.store.drop_gpu("h200-0@node")
    for _ in range(int(RETURN_S) + 2):
        assert office.state(job) is State.QUEUED
        office.clock.advance(1.0)
        office.join("h100")
        controllers.heal(office.hands)  # its Celery queue is not empty, so nothing is lost
        controllers.reroute(office.hands)
        if office.store.get(job).queue != "free.h200":
            break
    office.rebalance()
    assert office.broker["free.h100"] == [Ticket(job, 2, "free.h100")]


def test_wake_releases_what_was_held_and_expires_what_is_late(office: Office) -> None:
    now = office.clock.now
    held = submitted(office.store, not_before=now + 5)
    late = submitted(office.store, deadline=now + 2)
    assert office.state(held) is State.HELD
    office.clock.advance(6)
    controllers.wake(office.hands)
    assert office.state(held) is State.PENDING
    assert office.state(late) is State.EXPIRED


def test_deliver_finishes_what_a_worker_left(office: Office) -> None:
    job = ended(office.store)
    controllers.deliver(office.hands)
    assert office.delivered == [job]


def test_a_tick_does_it_all_and_keeps_its_report(office: Office) -> None:
    office.join("h100", queues=("free.h100",))
    submitted(office.store, queue="free.h100")
    report = tick(office.hands, "control", clock=office.clock)
    assert report["release_all"] == 1
    assert report["faults"] == []


def test_two_beats_in_one_period_make_one_tick(office: Office) -> None:
    assert tick(office.hands, "control", clock=office.clock)
    assert tick(office.hands, "control", clock=office.clock) == {}
    office.clock.advance(1.0)
    assert tick(office.hands, "control", clock=office.clock)


def test_ticks_that_piled_up_run_once(office: Office) -> None:
    office.clock.advance(3600)
    assert sum(bool(tick(office.hands, "control", clock=office.clock)) for _ in range(3600)) == 1


def test_a_controllers_bug_does_not_stop_the_others(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> list[str]:
        raise ZeroDivisionError("a bug")

    office.join("h100", queues=("free.h100",))
    submitted(office.store, queue="free.h100")
    monkeypatch.setattr(office.store, "reap", broken)
    report = tick(office.hands, "control", clock=office.clock)
    assert report["faults"] == ["reap: ZeroDivisionError('a bug')"]
    assert report["release_all"] == 1


def test_an_outcome_that_cannot_be_delivered_does_not_hold_up_the_others(office: Office) -> None:
    jobs = [ended(office.store) for _ in range(3)]

    def deliver(store: Store, job_id: str) -> bool:
        if job_id == jobs[1]:
            raise OSError("the host's broker is gone")
        return office.deliver(store, job_id)

    hands = replace(office.hands, deliver=deliver)
    assert tick(hands, "deliver", clock=office.clock)["deliver"] == 2
    assert office.store.undelivered() == [jobs[1]]


def test_a_slow_delivery_does_not_hold_up_release(office: Office) -> None:
    ended(office.store)
    reports: list[dict[str, Any]] = []

    def deliver(store: Store, job_id: str) -> bool:
        reports.append(tick(office.hands, "control", clock=office.clock))  # while it is under way
        return office.deliver(store, job_id)

    tick(replace(office.hands, deliver=deliver), "deliver", clock=office.clock)
    assert reports[0]["release_all"] == 0


def test_a_store_that_is_away_ends_the_tick(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> list[str]:
        raise Unreachable("away")

    monkeypatch.setattr(office.store, "wake", away)
    with pytest.raises(Unreachable):
        tick(office.hands, "control", clock=office.clock)
    monkeypatch.undo()
    office.clock.advance(1.0)
    assert tick(office.hands, "control", clock=office.clock)  # nothing blocks the next one


def test_a_ticket_in_flight_is_not_released_again(office: Office) -> None:
    office.join("h100", queues=("free.h100",))
    ticket = queued(office.store)
    office.broker["free.h100"] = [ticket]
    assert office.rebalance() == 0
