"""How much work comes and waits."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from callsheet.routing.demand import RATE_S, SPREAD_S, URGENT_S, busy_with, cover, demands, peaks, rates
from callsheet.routing.tiers import FREE, PRO, TIERS
from tests.support.snapshots import NOW, job, seat, waiting


def test_what_comes_in_the_first_minute_is_believed_at_once() -> None:
    average = rates({"q": 30.0}, {}, {}, 10.0, 10.0)
    assert average["q"] == pytest.approx(3.0)
    average = rates({"q": 60.0}, {"q": 30.0}, average, 10.0, 20.0)
    assert average["q"] == pytest.approx(3.0)


def test_the_first_picture_says_nothing_about_rates() -> None:
    assert rates({"q": 100.0}, {}, {}, 0.0, 0.0) == {}
    assert rates({"q": 100.0}, {}, {"q": 2.0}, 0.0, 0.0) == {"q": 2.0}


def test_a_steady_stream_is_averaged_to_its_rate() -> None:
    average: dict[str, float] = {}
    for tick in range(1000):
        average = rates({"q": 3.0 * (tick + 1)}, {"q": 3.0 * tick}, average, 1.0, 1e9)
    assert average["q"] == pytest.approx(3.0, rel=0.01)


def test_the_average_does_not_depend_on_how_often_one_looks() -> None:
    once = rates({"q": 0.0}, {"q": 0.0}, {"q": 2.0}, RATE_S, 1e9)["q"]
    twice = rates(
        {"q": 0.0}, {"q": 0.0}, rates({"q": 0.0}, {"q": 0.0}, {"q": 2.0}, RATE_S / 2, 1e9), RATE_S / 2, 1e9
    )
    assert once == pytest.approx(2.0 / math.e) == pytest.approx(twice["q"])


def test_a_counter_that_began_anew_gives_no_negative_rate() -> None:
    assert rates({"q": 1.0}, {"q": 500.0}, {}, 1.0, 1e9) == {"q": 0.0}


def test_a_tier_that_preempts_wants_its_backlog_served_soon() -> None:
    (one,) = demands([waiting("pro.a100.wan", 3, work_s=10.0)], {"pro.a100.wan": 0.5}, [PRO], 1.0)
    assert (one.tier, one.lane, one.need) == ("pro", "wan", "a100")
    assert one.per_s == pytest.approx(0.5 + 30.0 / URGENT_S)


def test_a_short_backlog_of_a_patient_tier_is_spread_over_half_a_minute() -> None:
    (one,) = demands([waiting("free.a100.wan", 3, work_s=10.0)], {"free.a100.wan": 0.5}, [FREE], 1.0)
    assert one.per_s == pytest.approx(0.5 + 30.0 / SPREAD_S)


def test_the_mix_of_the_oldest_work_is_wanted_at_the_fleets_capacity() -> None:
    queued = [waiting("free.a100.wan", 30, work_s=30.0), waiting("free.a100.ltx", 30, work_s=10.0)]
    found = {one.lane: one.per_s for one in demands(queued, {}, [FREE], 8.0)}
    assert sum(found.values()) == pytest.approx(8.0)
    assert found["wan"] == pytest.approx(3 * found["ltx"], rel=0.2)


def test_behind_the_end_of_a_front_that_was_cut_nothing_is_known() -> None:
    cut = replace(waiting("free.a100.wan", 2, work_s=10.0), jobs=500, work_s=5000.0)
    (one, *others) = demands([cut, waiting("free.a100.ltx", 90, key=NOW + 2.0)], {}, [FREE], 1.0)
    assert (one.lane, others) == ("wan", [])


def test_of_a_long_backlog_only_the_oldest_work_counts() -> None:
    old = waiting("free.a100.wan", 100, work_s=10.0, key=NOW - 1000.0)
    young = waiting("free.a100.ltx", 100, work_s=10.0)
    (one,) = demands([old, young], {"free.a100.ltx": 9.0}, [FREE], 1.0)
    assert one.lane == "wan"
    assert one.per_s == pytest.approx(1.0)


def test_the_oldest_work_is_a_mix_in_the_order_of_its_keys() -> None:
    first = waiting("free.a100.wan", 50, work_s=10.0)
    other = waiting("free.a100.ltx", 50, work_s=10.0, key=NOW + 0.5)
    found = {one.lane: one.per_s for one in demands([first, other], {}, [FREE], 2.0)}
    assert found == {"wan": pytest.approx(1.0), "ltx": pytest.approx(1.0)}


def test_what_nobody_wants_is_no_demand() -> None:
    assert demands([waiting("free.a100.wan", 0)], {}, TIERS, 1.0) == []


def test_jobs_that_run_and_wait_need_gpus() -> None:
    seats = [seat(runs=job(tier="pro")), seat(index=1, runs=job(tier="free"))]
    queued = [waiting("pro.a100.wan", 2), waiting("free.a100.wan", 7), waiting("pro.a100.ltx", 0)]
    assert busy_with(seats, queued, "pro") == {"wan": 3}


def test_peaks_are_kept_by_the_minute_for_ten_minutes() -> None:
    rows = peaks(600.0, {}, {"wan": 5})
    rows = peaks(630.0, rows, {"wan": 2})
    assert rows == {"wan": [(600.0, 5.0)]}
    rows = peaks(660.0, rows, {})
    assert rows == {"wan": [(600.0, 5.0), (660.0, 0.0)]}
    assert cover(rows) == {"wan": 5.0}
    assert cover(peaks(1139.0, rows, {})) == {"wan": 5.0}
    assert cover(peaks(1200.0, rows, {})) == {"wan": 0.0}
