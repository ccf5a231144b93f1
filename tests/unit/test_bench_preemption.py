"""The pure parts of ``python -m benchmarks.preemption``."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.figures import exit_code, missed
from benchmarks.preemption import main
from benchmarks.preemption_app import FOLDER, after, before, mark
from benchmarks.preemption_figures import (
    GOALS,
    Pair,
    Round,
    Run,
    Way,
    document,
    of_pairs,
    of_recoveries,
    of_rounds,
)
from benchmarks.preemption_marks import (
    Mark,
    first,
    last,
    least_step_cpu_s,
    of_job,
    read_marks,
    steps_computed,
    steps_s,
)
from benchmarks.preemption_stage import CATALOG, MODEL, SHAPES
from callsheet.catalog import load_catalog

T = 1_700_000_000.0
#: Told 50 ms after the submit, 0.2 s until the step ends, 30 ms of saving, 120 ms to the heir's first step.
WAY = Way(*(T + s for s in (0.0, 0.02, 0.03, 0.05, 0.25, 0.28, 0.29, 0.30, 0.36, 0.37, 0.40)))
ROUND = Round(
    way=WAY,
    restore_s=0.06,
    step_s=0.5,
    steps=8,
    preempted_after=3,
    steps_computed=8,
    steps_recorded=8,
    preemptions=1,
    gpu_s=4.6,
    gpu_s_undisturbed=4.5,
    identical=True,
)
GOOD = {
    "preempt_latency_over_floor": 0.9,
    "steps_redone": 0,
    "bit_identical": True,
    "resume_cost_steps": 0.2,
    "step_s": 0.7,
    "checkpoint_overhead": 0.001,
    "checkpoint_run_s": 66.0,
    "recovery_s_p50": 3.4,
    "recovery_s_max": 4.2,
}


def test_the_floor_is_a_step_a_save_and_100_ms() -> None:
    assert ROUND.over_floor == pytest.approx(0.4 / (0.5 + 0.03 + 0.1), rel=1e-5)


def test_beside_the_step_and_the_save_is_what_is_neither() -> None:
    assert WAY.beside_s == pytest.approx(0.4 - 0.2 - 0.03, abs=1e-5)
    late = replace(WAY, told=WAY.step_ended + 0.01)  # the flag was seen before its mark: nothing to wait for
    assert late.beside_s == pytest.approx(0.4 - 0.03, abs=1e-5)


def test_the_stages_are_the_whole_way() -> None:
    stages = WAY.stages_s()
    assert len(stages) == 10
    assert sum(stages.values()) == pytest.approx(WAY.latency_s)
    assert stages["told to step_ended"] == pytest.approx(0.2, abs=1e-5)


def test_resuming_costs_steps() -> None:
    assert ROUND.resume_cost_steps == pytest.approx(0.2)
    assert ROUND.beside_steps == pytest.approx((0.04 + 0.06) / 0.5, rel=1e-4)
    assert math.isnan(replace(ROUND, step_s=0.0).resume_cost_steps)


def test_figures_of_rounds_take_medians_sums_and_the_worst_film() -> None:
    slow = replace(ROUND, way=replace(WAY, first_step=T + 2.0), steps_computed=10, gpu_s=9.5)
    figures = of_rounds([ROUND, slow, ROUND])
    assert figures["preempt_latency_over_floor"] == ROUND.over_floor
    assert figures["preempt_latency_s_max"] == pytest.approx(2.0)
    assert (figures["steps_redone"], figures["steps_redone_as_recorded"]) == (2, 0)
    assert figures["resume_cost_steps_max"] == pytest.approx(10)
    assert figures["bit_identical"] is True
    assert figures["preempt_stages_ms_p50"]["step_ended to saved"] == 30.0
    assert of_rounds([ROUND, replace(ROUND, identical=False)])["bit_identical"] is False


def test_no_figures_of_nothing() -> None:
    for of in (of_rounds, of_pairs, of_recoveries):
        with pytest.raises(ValueError, match=r".+"):
            of([])


def test_raw_times_count_from_the_submit() -> None:
    raw = json.loads(json.dumps(ROUND.raw(), allow_nan=False))
    assert (raw["way_s"]["submitted"], raw["way_s"]["step_ended"]) == (0.0, 0.25)
    assert raw["gpu_s_undisturbed"] == 4.5


def test_overhead_is_the_share_that_saves_add() -> None:
    pairs = [Pair(Run(saving, 60.0, 9), Run(60.0, 50.0, 0)) for saving in (60.3, 66.0, 60.6)]
    figures = of_pairs(pairs)
    assert figures["checkpoint_overhead"] == pytest.approx(0.01)
    assert figures["checkpoint_cpu_overhead"] == pytest.approx(0.2)
    assert (figures["checkpoint_saves_per_run"], figures["checkpoint_run_s"]) == (9, 60.0)


def test_recoveries() -> None:
    assert of_recoveries([3.0, 9.0, 4.0, 5.0]) == {"recovery_s_p50": 4.0, "recovery_s_max": 9.0}


def test_every_goal_of_the_document_tells_its_bound_and_whether_it_is_met() -> None:
    made = document(GOOD, machine={}, took_s=1.0)
    assert {goal.figure for goal in GOALS} == set(GOOD) == set(made["goals"])
    assert made["goals"]["bit_identical"] == {"goal": "= true", "met": True}
    assert made["goals"]["steps_redone"] == {"goal": "= 0", "met": True}
    assert (missed(made), exit_code(made)) == ([], 0)
    assert json.loads(json.dumps(made, allow_nan=False))["bit_identical"] is True


@pytest.mark.parametrize(
    ("figure", "bad"),
    [
        ("preempt_latency_over_floor", 1.3),
        ("steps_redone", 1),
        ("steps_redone", -1),
        ("bit_identical", False),
        ("resume_cost_steps", 1.0),
        ("resume_cost_steps", math.nan),
        ("step_s", 0.5),
        ("checkpoint_overhead", 0.01),
        ("checkpoint_run_s", 59.0),
        ("recovery_s_p50", 5.0),
        ("recovery_s_max", 10.0),
    ],
)
def test_a_missed_goal_is_named_and_ends_with_1(figure: str, bad: Any) -> None:
    made = document({**GOOD, figure: bad})
    assert (missed(made), exit_code(made)) == ([figure], 1)


def test_parts_that_were_not_measured_have_no_goal_to_miss() -> None:
    assert set(document({"recovery_s_p50": 3.0})["goals"]) == {"recovery_s_p50"}


def marks(*rows: tuple[float, str, float]) -> list[Mark]:
    return [Mark(at, name, "job", value) for at, name, value in rows]


def test_steps_are_timed_within_an_attempt_only() -> None:
    seen = marks(
        (1.0, "encode", 0), (2.0, "denoise", 0), (2.5, "step", 1), (3.25, "step", 2), (3.3, "saved", 2),
        (9.0, "restore", 0), (9.5, "denoise", 0), (10.0, "step", 3), (10.0, "decode", 0),
    )  # fmt: skip
    assert steps_s(seen) == [0.5, 0.75, 0.5]
    assert steps_computed(seen) == 3


def test_the_quickest_step_by_cpu_time() -> None:
    seen = marks(
        (1.0, "step", 1), (1.0, "cpu", 5.0), (2.0, "cpu", 5.75), (3.0, "step", 3), (3.0, "cpu", 6.25)
    )
    assert least_step_cpu_s(seen) == 0.5


def test_the_last_mark_of_a_name_until_a_time() -> None:
    seen = marks((1.0, "rebalance", 0), (2.0, "rebalance", 0), (3.0, "rebalance", 0))
    assert (last(seen, "rebalance", until=2.0), last(seen, "rebalance", until=9.0)) == (2.0, 3.0)
    with pytest.raises(ValueError, match="nothing named rebalance"):
        last(seen, "rebalance", until=0.5)


def test_the_first_mark_of_a_name_since_a_time() -> None:
    seen = marks((1.0, "told", 0), (2.0, "told", 0), (3.0, "saved", 0))
    assert (first(seen, "told"), first(seen, "told", since=1.5)) == (1.0, 2.0)
    with pytest.raises(ValueError, match="nothing named told"):
        first(seen, "told", since=2.5)


def test_marks_of_all_processes_come_in_order_without_the_line_being_written(tmp_path: Path) -> None:
    (tmp_path / "1.marks").write_text('[2.0, "step", "a", 1]\n[4.0, "st')
    (tmp_path / "2.marks").write_text('[1.0, "rebalance", "", 0]\n[3.0, "step", "b", 1]\n')
    found = read_marks(tmp_path)
    assert [one.at for one in found] == [1.0, 2.0, 3.0]
    assert of_job(found, "b") == [Mark(3.0, "step", "b", 1)]


def test_a_mark_names_the_job_of_a_ticket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    mark("told", "1b-2c.3")
    mark("step", "1b-2c", 4)
    assert [(one.name, one.job, one.value) for one in read_marks(tmp_path)] == [
        ("told", "1b-2c", 0),
        ("step", "1b-2c", 4),
    ]


def test_what_is_marked_works_as_before() -> None:
    said: list[Any] = []

    class Owner:
        def act(self, number: int, *, fail: bool = False) -> int:
            said.append("act")
            if fail:
                raise KeyError(number)
            return number + 1

    before(Owner, "act", lambda _self, number, **_: said.append(number))
    after(Owner, "act", lambda _self, number, **_: said.append(-number))
    assert Owner().act(1) == 2
    with pytest.raises(KeyError):
        Owner().act(2, fail=True)
    assert said == [1, "act", -1, 2, "act"]


def test_the_catalog_has_every_shape_that_is_tried(tmp_path: Path) -> None:
    (tmp_path / "catalog.toml").write_text(CATALOG)
    spec = load_catalog(str(tmp_path / "catalog.toml"), tmp_path).get(MODEL)
    for size, frames in SHAPES:
        assert tuple(map(int, size.split("x"))) in spec.sizes
        assert frames <= spec.max_frames
        assert frames % spec.frame_stride == 1


@pytest.mark.parametrize("wrong", [["--only", "nonsense"], ["--rounds", "0"], ["--pairs", "many"]])
def test_wrong_usage_ends_with_2(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(wrong)
    assert end.value.code == 2
    assert wrong[0] in capsys.readouterr().err
