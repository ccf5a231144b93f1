"""``celery -A tests.support.paced_app``: our app, whose GPU workers run at a pace that tests set.

Tiny models make a step in milliseconds, so nothing could be done to a running job on purpose. Each step here
takes at least ``PACE_S`` seconds, as on a GPU, and a job can be stopped at a gate: after a given step, or in
a phase, it waits until it has an order (or the gate is removed). Gates are files ``<folder>/<job id>`` that
hold ``step 3`` or ``phase decode``; the worker writes ``<job id>.at`` when it stands there.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from callsheet.app import app

PACE, GATES = "PACED_APP_STEP_S", "PACED_APP_GATES"
LONGEST_S = 60.0

__all__ = ["app"]


def stand(folder: Path, place: str, journal: Any) -> None:
    """Wait at the gate, if there is one here."""
    job_id = journal._now.job_id
    gate, sign = folder / job_id, folder / f"{job_id}.at"
    ends = time.monotonic() + LONGEST_S
    while gate.is_file() and gate.read_text() == place and not journal.order():
        if not sign.exists():
            sign.write_text(place)
        if time.monotonic() > ends:
            raise AssertionError(f"job {job_id} stood at {place} for {LONGEST_S} s")
        time.sleep(0.005)
    if sign.exists():
        gate.unlink(missing_ok=True)  # it served: the next attempt passes
        sign.unlink(missing_ok=True)


def slow_down() -> None:
    """Patch how a child tells what it does."""
    from callsheet.workers.journal import SlateJournal

    pace_s, folder = float(os.environ.get(PACE, "0")), Path(os.environ[GATES])
    step, phase = SlateJournal.step, SlateJournal.phase

    def paced_step(self: Any, done: int, total: int) -> None:
        time.sleep(pace_s)
        step(self, done, total)
        stand(folder, f"step {done}", self)

    def gated_phase(self: Any, name: str) -> None:
        phase(self, name)
        stand(folder, f"phase {name}", self)

    SlateJournal.step, SlateJournal.phase = paced_step, gated_phase  # type: ignore[method-assign]


if os.environ.get(GATES):
    from celery.signals import worker_process_init

    worker_process_init.connect(lambda **_: slow_down(), weak=False)
