"""What ticks keep of their decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from callsheet.beat import rebalancer
from callsheet.beat.controllers import Hands
from callsheet.beat.look import look_at
from callsheet.beat.rebalancer import rebalance_all, seat_urgent
from callsheet.records.decisions import SCALE, SEAT, SERVE, Account
from callsheet.records.lanes import Waiting
from callsheet.routing.fleet import FleetRules
from callsheet.routing.snapshot import Snapshot
from tests.support.jobs import claimed, new_job, op
from tests.support.office import Office
from tests.support.snapshots import gpu, lane, lanes

RULES = FleetRules(lanes=lanes(lane("wan")))


@pytest.fixture
def office() -> Office:
    made = Office()
    made.hands = replace(made.hands, fleet=RULES)
    return made


def submit(office: Office, job_id: str, queue: str) -> None:
    tier = queue.partition(".")[0]
    office.store.submit(replace(new_job(job_id, queue=queue, tier=tier), work_s=60.0), op=op())


def kept(office: Office) -> list[Account]:
    return [Account.from_json(plan) for plan in office.store.plans()]


def test_a_tick_keeps_what_it_decided_and_an_idle_one_keeps_nothing(office: Office) -> None:
    office.store.beat_gpu(gpu(warm=["wan"]), ttl_s=60)
    rebalance_all(office.hands)
    assert [one.kind for one in kept(office)[0].decisions] == [SERVE, SCALE]
    rebalance_all(office.hands)
    assert len(kept(office)) == 1


def test_a_look_that_was_asked_for_keeps_whom_it_seated(office: Office) -> None:
    office.store.beat_gpu(gpu(warm=["wan"]), ttl_s=60)
    submit(office, "film", "free.a100.wan")
    ticket = office.store.assign("film", "direct.a100-0@node", reason="", op=op())
    assert ticket is not None
    claimed(office.store, ticket, worker="a100-0@node")
    submit(office, "urgent", "pro.a100.wan")
    seat_urgent(office.hands)
    (told,) = kept(office)
    (decision,) = told.decisions
    assert (decision.kind, decision.job, decision.victim) == (SEAT, "urgent", "film")
    assert told.at == office.store.now()
    seat_urgent(office.hands)
    assert len(kept(office)) == 1


def test_who_has_no_use_for_plans_keeps_none(office: Office) -> None:
    office.store.beat_gpu(gpu(warm=["wan"]), ttl_s=60)
    rebalance_all(replace(office.hands, keeps_plans=False))
    assert kept(office) == []


@pytest.mark.parametrize("when", ["when it had read what waits", "when it had read everything"])
@pytest.mark.parametrize("round_", [rebalance_all, seat_urgent])
def test_two_rounds_at_once_take_one_victim_for_one_job(
    office: Office, monkeypatch: pytest.MonkeyPatch, when: str, round_: Callable[[Hands], int]
) -> None:
    """Another controller worker seats the waiting job while this one looks, or before it acts."""
    for number in range(2):
        place = gpu(index=number, warm=["wan"])
        office.store.beat_gpu(place, ttl_s=60)
        submit(office, f"free-{number}", "free.a100.wan")
        ticket = office.store.assign(f"free-{number}", f"direct.{place.name}", reason="", op=op())
        assert ticket is not None
        claimed(office.store, ticket, worker=place.name)
    submit(office, "urgent", "pro.a100.wan")

    def rival() -> None:
        monkeypatch.setattr(rebalancer, "look_at", look_at)
        assert seat_urgent(office.hands) == 1

    def interrupted(hands: Hands, waiting: Sequence[Waiting]) -> Snapshot:
        if when == "when it had read what waits":
            rival()
        picture = look_at(hands, waiting)
        if when == "when it had read everything":
            rival()
        return picture

    monkeypatch.setattr(rebalancer, "look_at", interrupted)
    round_(office.hands)
    victims = [job for job in office.store.running() if job.order]
    (direct,) = (queue for queue in office.store.published() if queue.startswith("direct."))
    assert [direct.removeprefix("direct.")] == [job.worker for job in victims]
    assert office.signals == [(job.ticket_id, job.worker) for job in victims]
