"""The wait that is predicted at submit, and what is refused for it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from callsheet.routing.admission import (
    AVERAGE_S,
    SURE,
    Flows,
    Prediction,
    flows,
    predict,
    refusal,
    retry_after_s,
    too_long,
)
from callsheet.routing.tiers import FREE, PRO
from tests.support.snapshots import NOW, job, lane, lanes, seat, waiting

HOUR = replace(FREE, longest_wait_s=3600.0, share=0.0)
TIERS = (PRO, HOUR)
SEEN = Flows(NOW, capacity=10.0)


def wait_s(work_s: float, seen: Flows, tier: str = "free") -> float:
    return predict(tier, work_s, seen, TIERS).wait_s


def test_work_before_it_is_done_by_the_whole_fleet() -> None:
    assert wait_s(100.0, SEEN) == 10.0


def test_tiers_before_its_own_are_served_first_and_take_what_comes_to_them() -> None:
    seen = replace(SEEN, left={"pro": 50.0, "free": 1e9}, came={"pro": 5.0, "free": 3.0})
    assert wait_s(100.0, seen) == (100.0 + 50.0) / (10.0 - 5.0)
    assert wait_s(100.0, seen, "pro") == 10.0
    runs = replace(seen, running={"pro": 5.0, "free": 20.0})
    assert wait_s(100.0, runs) == (100.0 + 50.0 + 25.0) / (10.0 - 5.0)
    assert wait_s(100.0, runs, "pro") == 10.5


def test_a_guaranteed_share_is_served_beside_the_tiers_before() -> None:
    seen = replace(SEEN, came={"pro": 20.0})
    tiers = (PRO, replace(HOUR, share=0.2))
    assert predict("free", 100.0, seen, tiers) == Prediction(50.0, 100.0, 2.0)


def test_what_was_served_of_late_counts_where_it_is_more() -> None:
    assert wait_s(100.0, replace(SEEN, served={"free": 20.0})) == 5.0
    assert wait_s(100.0, replace(SEEN, served={"free": 1.0})) == 10.0
    assert wait_s(100.0, replace(SEEN, came={"pro": 20.0}, served={"free": 1.0})) == 100.0


def test_nothing_is_predicted_where_nothing_is_known() -> None:
    assert wait_s(1e9, Flows()) == 0.0
    assert not too_long(Prediction(0.0, 1e9, 0.0), HOUR)


def test_only_a_wait_that_is_surely_too_long_is_refused() -> None:
    assert not too_long(Prediction(SURE * 3600.0, 0.0, 1.0), HOUR)
    assert too_long(Prediction(SURE * 3600.0 + 1, 0.0, 1.0), HOUR)
    assert not too_long(Prediction(1e9, 0.0, 1.0), replace(HOUR, longest_wait_s=0.0))


def test_the_refusal_says_how_much_waits_when_to_come_back_and_which_tier() -> None:
    prediction = Prediction(4000.0, 40_000.0, 10.0)
    assert retry_after_s(prediction, HOUR) == 760.0
    text = refusal(prediction, 412, HOUR, TIERS)
    for part in (
        "tier free is full",
        "4000 s of waiting",
        "412 jobs",
        "3600 s",
        "in 760 s",
        "or in tier pro",
    ):
        assert part in text, part
    assert "or in tier" not in refusal(prediction, 1, replace(PRO, longest_wait_s=60.0), TIERS)


FLEET = [seat(index=n, runs=job(f"j{n}"), frees_s=30.0) for n in range(2)]
SPECS = lanes(lane("wan", speed={"a100": 5.0}))


def test_flows_average_what_came_and_what_was_served() -> None:
    first = flows(NOW, [waiting("free.a100.wan", 2, offered_s=100.0)], FLEET, SPECS, Flows())
    assert (first.came, first.served, first.left, first.capacity) == ({}, {}, {"free": 20.0}, 10.0)
    assert first.running == {"free": 300.0}
    # of 60 s more, half was served; a second backlog of the tier is summed up
    now = [waiting("free.a100.wan", 5, offered_s=150.0), waiting("free.a100.ltx", 0, offered_s=10.0)]
    later = flows(NOW + AVERAGE_S, now, FLEET, SPECS, first)
    share = 1 - math.exp(-1)
    assert later.came["free"] == pytest.approx(share * 60.0 / AVERAGE_S)
    assert later.served["free"] == pytest.approx(share * 30.0 / AVERAGE_S)
    assert flows(NOW, now, FLEET, SPECS, first).came == {}  # no time has passed


def test_flows_read_back_without_what_a_newer_version_added() -> None:
    told = flows(NOW, [waiting("free.a100.wan", 2)], FLEET, SPECS, SEEN)
    assert Flows.from_json({**told.to_json(), "newer": 1}) == told
