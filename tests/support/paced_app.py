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


def places(gate: Path) -> list[str]:
    """Where the job is still to stand."""
    try:
        return gate.read_text().splitlines()
    except FileNotFoundError:
        return []


def stand(folder: Path, place: str, journal: Any) -> None:
    """Wait at the gate, if there is one here. Left by an order, it has served."""
    gate, sign = folder / journal._now.job_id, folder / f"{journal._now.job_id}.at"
    ends, stood = time.monotonic() + LONGEST_S, False
    while place in places(gate):
        if not stood:
            sign.write_text(place)
            stood = True
        if journal.order():
            gate.write_text("\n".join(other for other in places(gate) if other != place))
        elif time.monotonic() > ends:
            raise AssertionError(f"job {journal._now.job_id} stood at {place} for {LONGEST_S} s")
        time.sleep(0.005)


def slow_down() -> None:
    """Patch how a child tells what it does."""
    from callsheet.workers.journal import SlateJournal

    pace_s, folder = float(os.environ.get(PACE, "0")), Path(os.environ[GATES])
    step, phase = SlateJournal.step, SlateJournal.phase

    def paced_step(self: Any, done: int, total: int, step_s: float = 0.0) -> None:
        time.sleep(pace_s)
        step(self, done, total, step_s)
        stand(folder, f"step {done}", self)

    def gated_phase(self: Any, name: str) -> None:
        phase(self, name)
        stand(folder, f"phase {name}", self)

    SlateJournal.step, SlateJournal.phase = paced_step, gated_phase  # type: ignore[method-assign]


if os.environ.get(GATES):
    from celery.signals import worker_process_init

    worker_process_init.connect(lambda **_: slow_down(), weak=False)
