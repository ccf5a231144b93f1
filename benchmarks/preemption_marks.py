"""What the marks of ``preemption_app.py`` say about one job. Pure, but for reading the files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """Something that happened."""

    at: float  # seconds since the epoch
    name: str
    job: str = ""
    value: float = 0


def read_marks(folder: Path) -> list[Mark]:
    """Every mark of every process, in the order of time. A line that is being written is left out."""
    found = []
    for path in folder.glob("*.marks"):
        whole, _, _ = path.read_text().rpartition("\n")
        found += [Mark(*json.loads(line)) for line in whole.splitlines()]
    return sorted(found)


def of_job(marks: Iterable[Mark], job: str) -> list[Mark]:
    """Those of one job."""
    return [mark for mark in marks if mark.job == job]


def first(marks: Iterable[Mark], name: str, *, since: float = 0.0) -> float:
    """When something happened first, not before ``since``. Raises ValueError when it did not."""
    found = next((mark.at for mark in marks if mark.name == name and mark.at >= since), None)
    if found is None:
        raise ValueError(f"nothing named {name} was marked: the deployment did not run as it should")
    return found


def last(marks: Iterable[Mark], name: str, *, until: float) -> float:
    """When something happened last, not after ``until``. Raises ValueError when it did not."""
    found = [mark.at for mark in marks if mark.name == name and mark.at <= until]
    if not found:
        raise ValueError(f"nothing named {name} was marked: the deployment did not run as it should")
    return found[-1]


def steps_s(marks: Iterable[Mark]) -> list[float]:
    """Seconds of each computed step of one job, in any number of attempts.

    A step begins where the denoising begins or the step before ended.
    """
    return list(_steps_s(marks))


def _steps_s(marks: Iterable[Mark]) -> Iterator[float]:
    began = 0.0
    for mark in marks:
        if mark.name == "step" and began:
            yield mark.at - began
        if mark.name in ("step", "denoise"):
            began = mark.at


def least_step_cpu_s(marks: Iterable[Mark]) -> float:
    """CPU-seconds of the quickest step but the first, of one attempt.

    On one thread no step takes less wall time, however quiet the machine gets.
    """
    used = [mark.value for mark in marks if mark.name == "cpu"]
    return min(b - a for a, b in pairwise(used))


def steps_computed(marks: Iterable[Mark]) -> int:
    """Steps that the GPU computed for one job, those that were computed again included."""
    return sum(mark.name == "step" for mark in marks)
