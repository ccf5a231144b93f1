"""When a running job is expected to end, and to reach the end of its next step."""

from __future__ import annotations

import pytest

from callsheet.routing.estimates import Ends, LaneSpec, ends, rough_capacity
from tests.support.snapshots import NOW, job, lane

WAN = lane("wan", load_s=10.0)  # twice as fast on an H100


def test_the_service_time_follows_the_speed_of_the_class() -> None:
    assert WAN.service_s(60.0, "a100") == 60.0
    assert WAN.service_s(60.0, "h100") == 30.0
    with pytest.raises(KeyError):
        WAN.service_s(60.0, "t4")


@pytest.mark.parametrize("phase", ["decode", "store"])
def test_after_its_last_step_a_job_is_about_to_end(phase: str) -> None:
    assert ends(job(phase=phase, step_s=5.0), WAN, "a100", NOW) == Ends(0.0, 0.0)


def test_measured_steps_come_before_the_estimate() -> None:
    running = job(step=2, steps=8, step_s=5.0, work_s=1.0)
    assert ends(running, WAN, "a100", NOW + 1.0) == Ends(29.0, 4.0)


def test_before_any_step_was_measured_the_estimate_counts() -> None:
    running = job(step=2, steps=8, work_s=80.0)  # 10 s a step on an A100, 5 s on an H100
    assert ends(running, WAN, "a100", NOW + 1.0) == Ends(59.0, 9.0)
    assert ends(running, WAN, "h100", NOW + 1.0) == Ends(29.0, 4.0)


def test_a_job_that_loads_begins_its_steps_when_its_weights_are_there() -> None:
    running = job(step=0, phase="load", work_s=80.0)
    assert ends(running, WAN, "a100", NOW + 4.0) == Ends(86.0, 16.0)


def test_a_resumed_job_has_only_the_steps_after_its_checkpoint_to_go() -> None:
    running = job(step=0, from_step=6, phase="load", work_s=80.0)
    assert ends(running, WAN, "a100", NOW).frees_s == 30.0


def test_a_job_that_is_late_takes_as_long_again() -> None:
    assert ends(job(step=7, step_s=5.0), WAN, "a100", NOW + 5.0) == Ends(0.0, 0.0)
    assert ends(job(step=7, step_s=5.0), WAN, "a100", NOW + 65.0) == Ends(60.0, 0.0)
    assert ends(job(step=7, work_s=80.0), WAN, "a100", NOW + 12.0).frees_s == 2.0


def test_a_lane_that_nobody_knows_runs_as_on_the_reference_gpu() -> None:
    assert ends(job(step=2, work_s=80.0), None, "a100", NOW).frees_s == 60.0


def test_right_after_a_step_the_next_one_is_still_to_run() -> None:
    assert ends(job(step=2, step_s=5.0), WAN, "a100", NOW).yields_s == 5.0


def test_the_rough_capacity_is_the_mean_speed_of_what_each_gpu_runs() -> None:
    fast = LaneSpec("fast", {"a100": 1.0, "h100": 3.0})
    assert rough_capacity({"a100": 2, "h100": 1, "l40s": 5}, [fast, LaneSpec("slow", {"h100": 1.0})]) == 4.0
