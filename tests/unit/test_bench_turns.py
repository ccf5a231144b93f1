"""Two processes of a benchmark that work in turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.preemption_turns import Studio, in_turns


def open_worker() -> Callable[[dict[str, Any]], tuple[float, float]]:
    """Computes for so many CPU-seconds; answers them and what it took, the other's turns included."""

    def work(film: dict[str, Any]) -> tuple[float, float]:
        began, used = time.monotonic(), time.process_time()
        while time.process_time() - used < film["cpu_s"]:
            pass
        return time.process_time() - used, time.monotonic() - began

    return work


def test_each_is_timed_by_its_own_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.preemption_turns.TURN_S", 0.1)
    with Studio(open_worker) as one, Studio(open_worker) as other:
        for studio in (one, other):
            studio.make({"cpu_s": 0.01})
        made = in_turns((one, other), {"cpu_s": 0.6})
    for (cpu_s, took_in_all_s), turns_s in made:
        assert cpu_s <= turns_s < took_in_all_s  # it stood still while the other worked


def test_a_studio_makes_one_film_after_another() -> None:
    with Studio(open_worker) as studio:
        assert [studio.make({"cpu_s": seconds})[0] >= seconds for seconds in (0.01, 0.02)] == [True, True]


def test_a_process_that_dies_is_no_film() -> None:
    with Studio(open_worker) as studio, pytest.raises(EOFError):
        studio.make({})
