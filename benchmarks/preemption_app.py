"""``celery -A benchmarks.preemption_app``: our app, unchanged but for marks that tell when what happened.

Nothing waits or is left out here. A mark is one line, appended to a file of its process; it costs some 20 µs.
Times are of this machine's clock, which is also the store's.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from celery.signals import celeryd_after_setup, task_postrun, task_received, worker_process_init

from callsheet.app import app
from callsheet.tasks.publish import REBALANCE
from callsheet.workers.keeper import Keeper

FOLDER = "BENCHMARK_MARKS"  # where the files of marks lie; no marks without it

__all__ = ["app"]


def mark(name: str, job: str = "", value: float = 0) -> None:
    """Note that this happens now. ``job``: a job's id, or a ticket's, of which the job is taken."""
    line = json.dumps([time.time(), name, job.partition(".")[0], value])
    with (Path(os.environ[FOLDER]) / f"{os.getpid()}.marks").open("a") as file:
        file.write(f"{line}\n")


def before(owner: Any, name: str, note: Callable[..., None]) -> None:
    """Call ``note`` with the same arguments before each call of ``owner.name``."""
    inner = getattr(owner, name)

    @functools.wraps(inner)
    def noted(*args: Any, **kwargs: Any) -> Any:
        note(*args, **kwargs)
        return inner(*args, **kwargs)

    setattr(owner, name, noted)


def after(owner: Any, name: str, note: Callable[..., None]) -> None:
    """Call ``note`` with the same arguments after each call of ``owner.name`` that raised nothing."""
    inner = getattr(owner, name)

    @functools.wraps(inner)
    def noted(*args: Any, **kwargs: Any) -> Any:
        answer = inner(*args, **kwargs)
        note(*args, **kwargs)
        return answer

    setattr(owner, name, noted)


def _mark_controllers(**_: Any) -> None:
    """When a controller looks, what it orders, and when the heir's ticket is out."""
    from callsheet.beat import schedule

    before(schedule, "tick", lambda _hands, name: mark(name) if name == REBALANCE else None)
    before(schedule, "signal_yield", lambda ticket_id, _worker: mark("ordered", ticket_id))
    after(schedule, "publish", lambda ticket: mark("published", ticket.job_id))


def _mark_received(request: Any = None, **_: Any) -> None:
    """When a worker's parent has a ticket."""
    mark("received", str(request.id))


def _mark_freed(task_id: str = "", **_: Any) -> None:
    """When a child has done all that a ticket made it do, the queue's refill included."""
    mark("freed", task_id)


def _mark_step(run: Any, done: int, *_: Any) -> None:
    """A step has ended, by when the process had used so much CPU time (the value of ``cpu``)."""
    mark("step", run.lease.job.id, done)
    mark("cpu", run.lease.job.id, time.process_time())


def _mark_child(**_: Any) -> None:
    """What the process on the GPU does. Runs in it, since these modules import torch."""
    from callsheet.workers.journal import SlateJournal
    from callsheet.workers.keeping import Keeping
    from callsheet.workers.running import RunningAttempt

    before(RunningAttempt, "on_step", _mark_step)
    after(SlateJournal, "phase", lambda journal, name: mark(name, journal._now.job_id))
    after(Keeping, "save", lambda keeping, snapshot, _s: mark("saved", keeping._lease.job.id, snapshot.step))
    before(SlateJournal, "end", lambda journal, _resident: mark("end", journal._now.job_id))


if os.environ.get(FOLDER):
    after(Keeper, "tell", lambda _keeper, ticket_id, _order: mark("told", ticket_id))
    celeryd_after_setup.connect(_mark_controllers, weak=False)
    task_received.connect(_mark_received, weak=False)
    task_postrun.connect(_mark_freed, weak=False)
    worker_process_init.connect(_mark_child, weak=False)
