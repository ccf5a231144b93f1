"""A progress bar on stderr; plain lines where stderr is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from callsheet.records.jobs import Job
from callsheet.records.states import State


@contextmanager
def show_progress() -> Iterator[Callable[[Job], None]]:
    """Gives a function to call with every look at a job; several jobs get a line each."""
    if sys.stderr.isatty():
        with _bars() as look:
            yield look
    else:
        yield _lines()


def describe(job: Job) -> str:
    """What the job does now, in a few words."""
    if job.state is State.RUNNING:
        return f"{job.phase or 'running'} on {job.worker}"
    if job.state in (State.PENDING, State.QUEUED):
        return f"{job.state} for {job.queue}"
    return str(job.state)


@contextmanager
def _bars() -> Iterator[Callable[[Job], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.fields[short]}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[steps]:>7}"),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        rows: dict[str, TaskID] = {}

        def look(job: Job) -> None:
            if job.id not in rows:
                rows[job.id] = progress.add_task("", total=1.0, short=job.id[:8], steps="")
            progress.update(
                rows[job.id],
                completed=job.progress,
                description=describe(job),
                steps=f"{job.step}/{job.steps or job.request.steps}",
            )

        yield look


def _lines() -> Callable[[Job], None]:
    last: dict[str, str] = {}

    def look(job: Job) -> None:
        line = f"{job.id[:8]} {job.step}/{job.steps or job.request.steps} {describe(job)}"
        if last.get(job.id) != line:
            last[job.id] = line
            print(line, file=sys.stderr, flush=True)

    return look
