"""Admission at submit, over a memory store whose controllers have looked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from callsheet.beat import controllers
from callsheet.beat.rebalancer import rebalance_all
from callsheet.errors import NotAdmitted, Refused
from callsheet.records.jobs import NewJob
from callsheet.routing.admission import FRESH_S
from callsheet.routing.fleet import FleetRules
from callsheet.routing.tiers import FREE, PRO
from callsheet.tasks.admit import LOOK_S, Admission
from callsheet.tasks.generate import _of_member
from tests.support.jobs import new_job, op
from tests.support.office import Office
from tests.support.snapshots import gpu, lane, lanes

QUEUE = "free.a100.wan"
TIERS = (PRO, replace(FREE, longest_wait_s=100.0))
RULES = FleetRules(lanes=lanes(lane("wan", speed={"a100": 1.0})), tiers=TIERS)  # one GPU: 1 s of work per s


class Gate:
    """An office with one GPU, and who is let in."""

    def __init__(self) -> None:
        self.office = Office()
        self.office.hands = replace(self.office.hands, fleet=RULES)
        self.office.store.beat_gpu(gpu(warm=["wan"]), ttl_s=1e6)
        self.store, self.clock = self.office.store, self.office.clock
        self.admission = Admission(self.store, RULES, self.clock)

    def job(self, name: str = "", *, work_s: float = 10.0, charge_s: float = 0.0, **request: Any) -> NewJob:
        made = new_job(name, queue=QUEUE, **request)
        return replace(made, work_s=work_s, charge_s=charge_s)

    def submit(self, count: int = 1, **job: Any) -> None:
        for _ in range(count):
            self.store.submit(self.job(**job), op=op())

    def look(self) -> None:
        rebalance_all(self.office.hands)
        self.clock.advance(LOOK_S)

    def refused(self, **job: Any) -> bool:
        try:
            self.admission.check(self.job(**job))
        except NotAdmitted:
            return True
        return False


@pytest.fixture
def gate() -> Gate:
    return Gate()


def test_a_job_that_would_wait_too_long_is_refused_with_when_to_come_back(gate: Gate) -> None:
    gate.submit(9)
    gate.look()
    assert not gate.refused()
    gate.submit(1)
    gate.look()
    with pytest.raises(NotAdmitted, match="tier free is full") as caught:
        gate.admission.check(gate.job())
    assert caught.value.retry_after_s == pytest.approx(10.0)
    assert isinstance(caught.value, Refused)
    assert caught.value.exit_code == 6


def test_a_tier_without_a_bound_admits_all(gate: Gate) -> None:
    gate.submit(50)
    gate.look()
    assert gate.refused()
    assert not gate.refused(tier="pro")


def test_jobs_admitted_since_the_look_count(gate: Gate) -> None:
    gate.submit(8)
    gate.look()
    found = []
    for number in range(4):
        job = gate.job(f"burst-{number}")
        try:
            gate.admission.check(job)
        except NotAdmitted:
            found.append(number)
        else:
            gate.store.submit(job, op=op())
        gate.clock.advance(0.01)
    assert found == [2, 3]


def test_who_is_within_its_turns_does_not_wait_for_one_that_is_beyond(gate: Gate) -> None:
    gate.submit(50, tenant="flood", charge_s=60.0)
    gate.look()
    assert gate.refused(tenant="flood")
    assert not gate.refused(tenant="other")


def test_a_job_that_is_recorded_already_is_let_through(gate: Gate) -> None:
    gate.submit(50)
    gate.store.submit(gate.job("film", tenant="a", idempotency_key="k"), op=op())
    gate.look()
    assert not gate.refused(name="film")
    assert not gate.refused(tenant="a", idempotency_key="k")
    assert gate.refused(tenant="a", idempotency_key="other")


def test_a_job_for_later_is_let_through(gate: Gate) -> None:
    gate.submit(50)
    gate.look()
    assert not gate.refused(not_before=gate.clock.now + 3600)


def test_without_a_tick_of_late_all_are_let_through(gate: Gate) -> None:
    gate.submit(50)
    assert not gate.refused()
    gate.look()
    assert gate.refused()
    gate.clock.advance(FRESH_S)
    assert not gate.refused()


def test_a_member_of_a_group_keeps_when_to_come_back() -> None:
    told = _of_member(NotAdmitted("tier free is full", retry_after_s=7.0), 2)
    assert isinstance(told, NotAdmitted)
    assert told.retry_after_s == 7.0
    assert "member 3" in str(told)


def test_a_job_that_nears_its_longest_wait_goes_first(gate: Gate) -> None:
    gate.submit(tenant="many", charge_s=500.0)
    gate.submit(name="old", tenant="many", charge_s=500.0)
    gate.clock.advance(79)
    gate.submit(name="young", tenant="b")
    assert controllers.hasten(gate.office.hands) == 0
    gate.clock.advance(1.1)
    assert controllers.hasten(gate.office.hands) == 1
    assert gate.store.backlog_jobs(QUEUE)[1:] == ["old", "young"]
