"""The pure parts of ``python -m benchmarks``."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from benchmarks.__main__ import NAMES, main
from benchmarks.figures import (
    GOALS,
    Goal,
    document,
    exit_code,
    in_ms,
    median,
    missed,
    percentile,
    ratio,
)
from benchmarks.machine import PACKAGES, cpu_s, family, machine
from benchmarks.scene import scene, texture

GOOD = {
    "submit_per_s": 800.0,
    "claim_to_first_step_ms_p50": 12.0,
    "claim_to_first_step_ms_p99": 30.0,
    "dispatch_vs_celery": 1.5,
    "encode_s": 1.2,
    "idle_cpu_share": 0.004,
    "rebalance_policy_ms_p50": 60.0,
    "rebalance_ms_p50": 200.0,
    "rebalance_peak_mb": 90.0,
}


def made(**figures: float) -> dict[str, Any]:
    return document(figures, machine={"cpus": 2}, quick=False, took_s=1.0)


@pytest.mark.parametrize(
    ("share", "expected"), [(0, 1), (0.01, 1), (0.5, 50), (0.501, 51), (0.99, 99), (1, 100)]
)
def test_a_percentile_is_a_sample_by_nearest_rank(share: float, expected: float) -> None:
    assert percentile(range(100, 0, -1), share) == expected


def test_percentiles_of_few_samples() -> None:
    assert percentile([7.0], 0.99) == 7.0
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert percentile([1.0, 2.0], 0.99) == 2.0


@pytest.mark.parametrize(("samples", "share"), [([], 0.5), ([1.0], 1.1), ([1.0], -0.1), ([1.0], math.nan)])
def test_no_percentile_of_nothing_or_beyond_the_whole(samples: list[float], share: float) -> None:
    with pytest.raises(ValueError, match="no percentile"):
        percentile(samples, share)


def test_a_ratio_to_nothing_says_nothing() -> None:
    assert ratio(3, 2) == 1.5
    assert math.isnan(ratio(3, 0))


def test_durations_are_told_in_milliseconds() -> None:
    assert in_ms("wait", [0.001, 0.002, 0.4]) == {"wait_ms_p50": 2.0, "wait_ms_p99": 400.0}


def test_a_goal_is_met_on_its_side_of_the_bound_only() -> None:
    below, above = Goal("x", "<", 50), Goal("x", ">", 500)
    assert (below.met(49.9), below.met(50), below.met(math.nan)) == (True, False, False)
    assert (above.met(500.1), above.met(500), above.met(math.nan)) == (True, False, False)
    assert (below.text, above.text, Goal("x", "<", 0.01).text) == ("< 50", "> 500", "< 0.01")


def test_every_goal_of_the_document_tells_its_bound_and_whether_it_is_met() -> None:
    document_ = made(**GOOD)
    assert {goal.figure for goal in GOALS} == set(GOOD) == set(document_["goals"])
    assert document_["goals"]["encode_s"] == {"goal": "< 2", "met": True}
    assert missed(document_) == []
    assert exit_code(document_) == 0


def test_a_missed_goal_is_named_and_ends_with_1() -> None:
    document_ = made(**{**GOOD, "submit_per_s": 300.0, "idle_cpu_share": 0.02})
    assert missed(document_) == ["submit_per_s", "idle_cpu_share"]
    assert exit_code(document_) == 1


def test_a_figure_is_judged_before_it_is_rounded() -> None:
    document_ = made(encode_s=2.00001)
    assert document_["encode_s"] == 2.0
    assert missed(document_) == ["encode_s"]


def test_what_was_not_measured_has_no_goal_to_miss() -> None:
    document_ = made(encode_s=1.0, encode_mb=1.3)
    assert set(document_["goals"]) == {"encode_s"}
    assert exit_code(document_) == 0
    assert exit_code(made()) == 0


def test_the_document_is_json_even_where_nothing_can_be_said() -> None:
    document_ = made(submit_per_s=812.3456, idle_cpu_vs_celery=math.nan)
    read = json.loads(json.dumps(document_, allow_nan=False))
    assert (read["submit_per_s"], read["idle_cpu_vs_celery"]) == (812.3, None)
    assert list(read) == ["submit_per_s", "idle_cpu_vs_celery", "goals", "machine", "quick", "took_s"]


def test_the_machine_is_told_without_its_name() -> None:
    told = machine()
    assert set(told["versions"]) == set(PACKAGES)
    assert (told["cpus"], told["load_average_1m"] >= 0) == (os.cpu_count(), True)
    assert os.uname().nodename not in json.dumps({k: v for k, v in told.items() if k != "versions"}).split()


def test_cpu_time_is_a_process_s_own() -> None:
    before = cpu_s(os.getpid())
    while cpu_s(os.getpid()) == before:
        sum(range(100_000))
    assert before < cpu_s(os.getpid()) < before + 5


def test_a_family_is_a_process_and_its_descendants() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    parent.stdout.readline()  # the grandchild lives
    first, *others = family(parent.pid)
    parent.communicate("\n", timeout=30)
    assert (first, len(others)) == (parent.pid, 1)


def test_the_scene_is_the_same_each_time_and_every_frame_differs() -> None:
    film = scene(5, 64, 48)
    assert film.shape == (5, 48, 64, 3)
    assert film.dtype == np.uint8
    assert np.array_equal(film, scene(5, 64, 48))
    assert not np.array_equal(film, scene(5, 64, 48, seed=1))
    moved = [np.abs(film[i].astype(int) - film[i + 1]).mean() for i in range(4)]
    assert min(moved) > 2  # more than its grain


def test_texture_is_smoother_than_noise_and_uses_the_range() -> None:
    plane = texture(128, 128, np.random.default_rng(0))
    neighbours = np.abs(np.diff(plane, axis=1)).mean()
    assert 20 < plane.std() < 70
    assert neighbours < 0.7 * plane.std()  # of white noise: 1.1


def test_a_wrong_name_ends_with_2_and_says_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--only", "nonsense"])
    assert end.value.code == 2
    assert all(name in capsys.readouterr().err for name in NAMES[:1])
