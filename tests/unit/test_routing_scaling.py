"""GPUs wanted per class."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callsheet.routing.demand import PEAK_S, PEAKS
from callsheet.routing.rebalance import TARGETS_S, observe
from callsheet.routing.scaling import (
    BUSY,
    HORIZON_S,
    PART,
    URGENT_S,
    Scale,
    gpus_for,
    horizon_s,
    scale,
    work_wanted,
)
from callsheet.routing.seats import Seat
from callsheet.routing.tiers import FREE, PRO, TIERS
from tests.support.snapshots import NOW, lane, lanes, seat, snapshot, waiting

SPECS = lanes(lane("wan", speed={"a100": 1.0, "h100": 2.0}), lane("ltx"))
FLEET = [seat(index=index) for index in range(4)]


def scaled(
    averages: dict[str, float], *, now: float = NOW, fleet: list[Seat] = FLEET, before: Scale | None = None
) -> Scale:
    queued = [waiting(queue, 0) for queue in averages]
    needed = before.needed if before else {}
    return scale(now, queued, averages, fleet, SPECS, TIERS, needed)


def numbers(told: Scale) -> dict[str, int]:
    return {gpu_class: gpus for gpu_class, (gpus, _) in told.wanted.items()}


def test_arrivals_want_gpus_that_are_not_at_work_all_the_time() -> None:
    assert numbers(scaled({"free.a100.wan": 3.6})) == {"a100": 4}
    assert numbers(scaled({"free.a100.wan": 3.7})) == {"a100": 5}  # it would be at work for more than BUSY


def test_a_backlog_is_to_be_served_within_its_tiers_horizon() -> None:
    queued = [waiting("pro.a100.wan", 10, work_s=60.0), waiting("free.a100.ltx", 10, work_s=60.0)]
    wanted = work_wanted(queued, {"free.a100.ltx": 1.0}, {}, SPECS, TIERS)
    assert wanted == {("wan", "a100"): 600.0 / URGENT_S, ("ltx", "a100"): 1.0 + 600.0 / HORIZON_S}


def test_no_waiting_job_keeps_more_than_one_gpu_at_work() -> None:
    queued = [waiting("pro.a100.wan", 2, work_s=6000.0)]
    assert work_wanted(queued, {}, {}, SPECS, TIERS) == {("wan", "a100"): 4.0}  # two H100s
    assert work_wanted(queued, {}, {"a100": 1}, SPECS, TIERS) == {("wan", "a100"): 2.0}
    assert gpus_for({("wan", "a100"): 4.0}, {}, SPECS) == {"h100": 2.0}


def test_a_short_longest_wait_makes_a_short_horizon() -> None:
    assert horizon_s(replace(FREE, longest_wait_s=400.0)) == PART * 400.0
    assert horizon_s(replace(FREE, longest_wait_s=0.0)) == HORIZON_S
    assert horizon_s(PRO) == URGENT_S


def test_a_tier_gets_by_while_others_take_what_they_are_guaranteed() -> None:
    tiers = (PRO, replace(FREE, share=0.5))
    queued = [waiting("pro.a100.wan", 0), waiting("free.a100.wan", 1000, work_s=0.3)]
    rates = {"pro.a100.wan": 10.0}
    assert work_wanted(queued, rates, {}, SPECS, tiers)["wan", "a100"] == 10.0 / 0.5  # not 10 + 1
    few = [queued[0], waiting("free.a100.wan", 1, work_s=0.3)]
    assert work_wanted(few, rates, {}, SPECS, tiers)["wan", "a100"] == 10.0 + 2.0  # it takes one GPU at most
    assert work_wanted(queued[:1], rates, {}, SPECS, tiers)["wan", "a100"] == 10.0


def test_the_classes_that_are_there_are_used_before_others_are_wanted() -> None:
    work = {("wan", "a100"): 3.0}
    assert gpus_for(work, {"a100": 4}, SPECS) == {"a100": 3.0}
    both = gpus_for({("wan", "a100"): 4.0}, {"a100": 4, "h100": 1}, SPECS)
    assert both == {"h100": pytest.approx(BUSY), "a100": pytest.approx(4.0 - 2 * BUSY)}  # cheaper by its work


def test_what_nothing_there_can_do_wants_the_cheapest_class_that_can() -> None:
    assert gpus_for({("wan", "a100"): 4.0}, {"l40s": 9}, SPECS) == {"h100": 2.0}  # 1.60 for twice the work


def test_work_that_few_classes_can_do_chooses_first() -> None:
    work = {("ltx", "l40s"): 1.0, ("wan", "a100"): 1.8}
    assert gpus_for(work, {"h100": 1, "l40s": 9}, SPECS) == {"h100": 0.9, "l40s": 2.0}


def test_a_lane_that_no_class_runs_wants_nothing() -> None:
    assert gpus_for({("unknown", "a100"): 5.0, ("wan", "b200"): 5.0}, {"a100": 1}, SPECS) == {}


def test_more_is_wanted_at_once_and_fewer_only_after_ten_minutes() -> None:
    first = scaled({"free.a100.wan": 3.6})
    gust = scaled({"free.a100.wan": 9.0}, now=NOW + 5, before=first)
    assert numbers(gust) == {"a100": 10}
    calm, now = gust, NOW + 5
    while now < NOW + (PEAKS - 1) * PEAK_S:
        now += PEAK_S
        calm = scaled({"free.a100.wan": 3.6}, now=now, before=calm)
        assert numbers(calm) == {"a100": 10}
    assert "fewer are wanted once that held for ten minutes" in calm.wanted["a100"][1]
    later = scaled({"free.a100.wan": 3.6}, now=now + 2 * PEAK_S, before=calm)
    assert numbers(later) == {"a100": 4}


def test_the_reason_says_what_is_there_and_what_for() -> None:
    assert scaled({"free.a100.wan": 9.0}).wanted["a100"][1].startswith("4 are there; what comes and waits")
    assert "as many as" in scaled({"free.a100.wan": 3.6}).wanted["a100"][1]
    watched = Scale({}, {"a100": [(NOW - PEAK_S, 0.0)]})
    assert "no more were needed" in scaled({}, before=watched).wanted["a100"][1]


def test_gpus_that_just_came_are_watched_before_fewer_are_wanted() -> None:
    told = scaled({})
    assert numbers(told) == {"a100": 4}
    later = scaled({}, now=NOW + PEAKS * PEAK_S, before=told)
    assert numbers(later) == {"a100": 0}


def test_a_rebalance_remembers_what_is_wanted() -> None:
    picture = snapshot(FLEET, [waiting("free.a100.wan", 60, work_s=60.0)], specs=SPECS)
    memory = observe(picture)
    assert memory.wanted["a100"][0] == 14  # 3,600 s of work in 300 s, 0.9 of the time
    later = replace(picture, now=NOW + TARGETS_S - 1, waiting=[], memory=memory)
    assert observe(later).wanted == memory.wanted
