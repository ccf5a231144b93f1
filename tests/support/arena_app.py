"""``celery -A tests.support.arena_app``: the paced app, whose workers also write down each step they compute,
and which can be stopped between the end of a job and its delivery (a gate ``deliver``).

``<gates>/steps.log`` gets a line ``<job id> <attempt> <step>`` for each computed step, so that a test can
count the steps that were done twice.
"""

from __future__ import annotations

import importlib
import os
import time
from pathlib import Path
from typing import Any

from celery.signals import worker_process_init

from tests.support.paced_app import GATES, LONGEST_S, app, places

__all__ = ["STEPS_LOG", "app"]

STEPS_LOG = "steps.log"


def write_down(folder: Path) -> None:
    """Patch how a child tells its steps. A step that is only restored was not computed."""
    from callsheet.workers.journal import SlateJournal

    step = SlateJournal.step

    def noted_step(self: Any, done: int, total: int, step_s: float = 0.0) -> None:
        if self._now.phase != "restore":
            line = f"{self._now.job_id} {self._now.attempt} {done}\n"
            with (folder / STEPS_LOG).open("a") as log:
                log.write(line)
        step(self, done, total, step_s)

    SlateJournal.step = noted_step  # type: ignore[method-assign]


def stop_before_delivery(folder: Path) -> None:
    """Patch what a child does after a job: it stands at the gate, if there is one."""
    attend: Any = importlib.import_module("callsheet.workers.attend")
    deliver = attend.deliver

    def gated_deliver(store: Any, job_id: str) -> bool:
        ends = time.monotonic() + LONGEST_S
        while "deliver" in places(folder / job_id) and time.monotonic() < ends:
            (folder / f"{job_id}.at").write_text("deliver")
            time.sleep(0.005)
        return bool(deliver(store, job_id))

    attend.deliver = gated_deliver


def prepare(**_: Any) -> None:
    """In the child, after the paced app's own patches."""
    folder = Path(os.environ[GATES])
    write_down(folder)
    stop_before_delivery(folder)


if os.environ.get(GATES):
    worker_process_init.connect(prepare, weak=False)
