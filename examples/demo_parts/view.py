"""What the demo shows: live bars (plain lines where there is no terminal) and the last table."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    from callsheet.records.jobs import Job

console = Console() if sys.stdout.isatty() else Console(width=120)


@dataclass(frozen=True, slots=True)
class Shot:
    """One film to make."""

    tier: str
    model: str
    prompt: str

    @property
    def name(self) -> str:
        """For people: ``pro  tiny-wan``."""
        return f"{self.tier:<4} {self.model}"


Show = Callable[[int, "Job"], None]  # a look at the job of that shot


@contextmanager
def progress(shots: Sequence[Shot], steps: int) -> Iterator[Show]:
    """Gives a function to call with every look at a job."""
    with _bars(shots, steps) if console.is_terminal else _lines(shots) as show:
        yield show


@contextmanager
def _bars(shots: Sequence[Shot], steps: int) -> Iterator[Show]:
    columns = (
        TextColumn("{task.fields[shot]}"),
        BarColumn(bar_width=32),
        TextColumn("{task.completed:>2.0f}/{task.total:.0f}"),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bars:
        rows = [bars.add_task("", total=steps, shot=shot.name) for shot in shots]

        def show(number: int, record: Job) -> None:
            bars.update(
                rows[number], completed=steps if record.film else record.step, description=doing(record)
            )

        yield show


@contextmanager
def _lines(shots: Sequence[Shot]) -> Iterator[Show]:
    last: dict[int, tuple[str, int]] = {}

    def show(number: int, record: Job) -> None:
        now = (str(record.state), 3 * record.step // record.request.steps)  # each third of the way
        if last.get(number) != now:
            last[number] = now
            steps = f"{record.step:>2}/{record.request.steps}"
            say(f"{number + 1} {shots[number].name}  {steps}  {doing(record)}")

    yield show


def doing(record: Job) -> str:
    """What a job does now, in a few words."""
    if str(record.state) == "running":
        return f"{record.phase or 'running'} on {record.worker}"
    if record.ended:
        return f"{record.state} on {record.worker}" if record.worker else str(record.state)
    return f"waits for {record.queue}"


def table(records: Sequence[Job], films: Sequence[str]) -> Table:
    """What became of each job."""
    result = Table("job", "tier", "model", "queue", "worker")
    for name in ("wait s", "run s"):
        result.add_column(name, justify="right")
    result.add_column("film", overflow="fold")
    for record, film in zip(records, films, strict=True):
        seconds = (f"{record.wait_s:.2f}", f"{record.run_s:.2f}")
        what = (record.id[:8], record.tier, record.request.model, record.queue, record.worker)
        result.add_row(*what, *seconds, film)
    return result


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say what takes a while; with a spinner on a terminal."""
    if console.is_terminal:
        with console.status(f"{what} ..."):
            yield
    else:
        say(f"{what} ...")
        yield


def say(words: str) -> None:
    """One plain line."""
    console.print(words, highlight=False, markup=False, soft_wrap=True)


def shown(path: Path) -> str:
    """A path as short as it can be typed here."""
    return os.path.relpath(path)
