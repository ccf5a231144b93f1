"""Two processes of a benchmark that work in turns."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.preemption_turns import Studio, in_turns
from tests.support.live import until
from tests.support.supervised import lives

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the benchmark stops processes as Linux does")

STOPPED = """
import sys
from benchmarks.preemption_turns import Studio
from tests.unit.test_bench_turns import open_worker

if __name__ == "__main__":
    studio = Studio(open_worker)
    studio.make({"cpu_s": 0.0})
    studio.begin({"cpu_s": 1.0})
    print(studio.pid, flush=True)
    sys.stdin.read()
"""


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


def test_a_stopped_process_dies_with_its_parent(tmp_path: Path) -> None:
    script = tmp_path / "stopped.py"
    script.write_text(STOPPED)
    with subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    until(lambda: not lives(pid), what="the end of the stopped process")
