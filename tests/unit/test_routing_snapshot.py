"""What the policy is told, and what it remembers."""

from __future__ import annotations

import json

from callsheet.records.lanes import DIRECT
from callsheet.routing.fleet import FleetRules
from callsheet.routing.queues import direct_queue, worker_of
from callsheet.routing.rebalance import observe
from callsheet.routing.snapshot import Memory, Snapshot
from callsheet.routing.tiers import TIERS
from tests.support.snapshots import job, lane, lanes, seat, snapshot, waiting

SPECS = lanes(lane("wan"))


def test_what_is_remembered_survives_json() -> None:
    memory = observe(snapshot([seat(runs=job(tier="pro"))], [waiting("pro.a100.wan", 3)], specs=SPECS))
    back = Memory.from_json(json.loads(json.dumps(memory.to_json())))
    assert (back.targets, back.offered) == (memory.targets, memory.offered)
    assert observe(snapshot([], specs=SPECS, memory=back)).peaks == {"wan": [(9960.0, 4.0)]}


def test_a_memory_of_a_newer_version_is_read_without_what_it_added() -> None:
    assert Memory.from_json({"at": 5.0, "moods": {"wan": "good"}}) == Memory(at=5.0)


def test_a_fleet_that_nobody_described_has_the_usual_tiers_and_no_lanes() -> None:
    rules = FleetRules()
    assert (rules.tiers, dict(rules.lanes)) == (TIERS, {})
    assert Snapshot(0.0, [], [], {}).costs == rules.costs


def test_direct_queues_are_no_queues_of_a_tier() -> None:
    assert DIRECT.rstrip(".") not in {tier.name for tier in TIERS}
    assert worker_of(direct_queue("h100-0@host")) == "h100-0@host"
    assert worker_of("pro.h100.wan") == ""
