"""docs/cli.md names every command, key and exit code that there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from callsheet.catalog import load_catalog
from callsheet.cli.attempt_view import attempt_document
from callsheet.cli.gpu import gpu
from callsheet.cli.gpu_view import STATES, Seen, gpu_document
from callsheet.cli.job import job
from callsheet.cli.job_view import event_document, job_document
from callsheet.cli.model_view import model_document
from callsheet.cli.root import COMMANDS
from callsheet.records.gpus import Gpu, GpuOrder
from callsheet.records.jobs import AttemptRecord, Checkpoint, Event, Job, Spent
from callsheet.records.states import State
from tests.support.jobs import request

DOCS = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def keys(document: Mapping[str, Any]) -> Iterator[str]:
    for key, value in document.items():
        yield key
        if isinstance(value, Mapping):
            yield from keys(value)


DOCUMENTS = {
    "job": job_document(
        Job("j", State.PENDING, request(), 1.0, "t4", "free.t4", checkpoint=Checkpoint(1, "k", "", 1))
    ),
    "attempt": attempt_document(AttemptRecord(1, "w", 0, 1, "lost", "", 0, 1, Spent())),
    "gpu": gpu_document(
        Seen("g", Gpu("g", "t4", 16, "u", "h", 0), GpuOrder("cordoned", "ann", "why")), now=0.0
    ),
    "event": event_document(Event(0.0, "submitted", 0, "", "")),
    "model": model_document(next(iter(load_catalog())), "here"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_key_is_documented(name: str) -> None:
    assert [key for key in keys(DOCUMENTS[name]) if key not in DOCS] == []


def test_every_command_and_state_is_documented() -> None:
    assert [name for name in (*COMMANDS, *map(str, State), *STATES) if name not in DOCS] == []


def test_every_command_of_jobs_and_gpus_is_in_the_table() -> None:
    for group in (job, gpu):
        assert [name for name in group.commands if f"| `{group.name} {name}" not in DOCS] == []
