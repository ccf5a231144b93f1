"""What is read of a job to say where it is and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from callsheet.beat.explain import NAMED, explain
from callsheet.beat.rebalancer import rebalance_all
from callsheet.cli.explain_view import sentences
from callsheet.errors import JobNotFound
from callsheet.records.decisions import LOAD, SERVE, Account, Decision
from callsheet.routing.benches import AGED
from callsheet.routing.fleet import FleetRules
from callsheet.routing.tiers import FREE, PRO
from tests.support.jobs import new_job, op
from tests.support.office import Office
from tests.support.snapshots import gpu, lane, lanes

RULES = FleetRules(lanes=lanes(lane("wan"), lane("ltx")))
QUEUE = "free.a100.wan"


@pytest.fixture
def office() -> Office:
    made = Office()
    made.hands = replace(made.hands, fleet=RULES)
    made.store.beat_gpu(gpu(warm=["wan"]), ttl_s=1e6)
    return made


def submit(office: Office, job_id: str, queue: str = QUEUE, tenant: str = "a", **changes: Any) -> None:
    tier = queue.partition(".")[0]
    fields = {"work_s": 10.0, **changes}
    office.store.submit(replace(new_job(job_id, queue=queue, tier=tier, tenant=tenant), **fields), op=op())


def test_jobs_before_it_are_told_by_backlog_tier_and_weights(office: Office) -> None:
    submit(office, "p", "pro.a100.wan")
    submit(office, "other-lane", "free.a100.ltx")
    submit(office, "other-class", "free.l40s.wan")
    submit(office, "first")
    submit(office, "film")
    submit(office, "later")
    place = explain(office.hands, "film").place
    assert place is not None
    assert (place.jobs, place.tier_jobs, place.lane_jobs) == (1, 3, 3)
    assert (place.work_s, place.tier_work_s, place.lane_work_s) == (10.0, 30.0, 30.0)


def test_turns_that_a_tenant_has_used_are_told(office: Office) -> None:
    for number in range(3):
        submit(office, f"j{number}", charge_s=40.0)
    submit(office, "within", tenant="b")
    place = explain(office.hands, "j2").place
    assert place is not None
    assert place.turn_s == pytest.approx(80.0, abs=0.01)
    assert any("tenant a has used its turns" in text for text in sentences(explain(office.hands, "j2"), ""))
    within = explain(office.hands, "within").place
    assert within is not None
    assert within.turn_s == pytest.approx(0.0, abs=0.001)


def test_a_job_that_nears_its_longest_wait_is_told(office: Office) -> None:
    office.hands = replace(
        office.hands, fleet=replace(RULES, tiers=(PRO, replace(FREE, longest_wait_s=100.0)))
    )
    submit(office, "film")
    office.clock.advance(AGED * 100.0 - 1)
    place = explain(office.hands, "film").place
    assert place is not None
    assert not place.aged
    office.clock.advance(1)
    found = explain(office.hands, "film")
    assert found.place is not None
    assert found.place.aged
    assert any("yields to nobody" in text for text in sentences(found, ""))


def test_what_ticks_decided_about_it_is_told_with_the_time(office: Office) -> None:
    submit(office, "film", "pro.a100.wan")
    rebalance_all(office.hands)
    found = explain(office.hands, "film")
    assert [(at, one.kind, one.job) for at, one in found.decisions if one.job] == [
        (office.clock.now, "seat", "film")
    ]
    assert (found.chosen, found.chosen_why) == ("a100-0@node", "a100-0@node has its weights and is idle")


def test_loads_of_its_lane_and_servers_of_its_queue_are_told_the_newest_last(office: Office) -> None:
    submit(office, "film")
    for number in range(NAMED):
        told = (
            Decision(LOAD, f"load {number}", lane="wan"),
            Decision(SERVE, f"serve {number}", queues=(QUEUE,)),
            Decision(LOAD, "other", lane="ltx"),
        )
        office.store.keep_plan(Account(told).to_json(), op=op())
    reasons = [one.reason for _, one in explain(office.hands, "film").decisions]
    assert len(reasons) == NAMED
    assert reasons[-2:] == [f"load {NAMED - 1}", f"serve {NAMED - 1}"]


def test_an_alias_is_explained_and_an_unknown_job_is_not(office: Office) -> None:
    submit(office, "film")
    assert explain(office.hands, "film").job.id == "film"
    with pytest.raises(JobNotFound):
        explain(office.hands, "nope")
