"""docs/cli.md names every command, key and exit code that there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from callsheet.beat.explain import Explanation, Place
from callsheet.beat.foresee import foresee
from callsheet.beat.look import View
from callsheet.catalog import load_catalog
from callsheet.cli.attempt_view import attempt_document
from callsheet.cli.explain_view import explain_document
from callsheet.cli.gpu import gpu
from callsheet.cli.gpu_view import STATES, Seen, gpu_document
from callsheet.cli.job import job
from callsheet.cli.job_view import event_document, job_document
from callsheet.cli.model_view import model_document
from callsheet.cli.rebalance_view import decision_document, foreseen_document
from callsheet.cli.root import COMMANDS
from callsheet.records.decisions import LOAD, SCALE, SEAT, SERVE, Decision
from callsheet.records.gpus import Gpu, GpuOrder
from callsheet.records.jobs import AttemptRecord, Checkpoint, Event, Job, Spent
from callsheet.records.states import State
from callsheet.routing.fleet import FleetRules
from callsheet.store.memory import MemoryStore
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
    "explanation": explain_document(
        Explanation(
            Job("j", State.PENDING, request(), 1.0, "t4", "free.t4"),
            0.0,
            place=Place(0, 0.0, 0, 0.0, 0, 0.0, 0.0, 0.0, aged=False),
        ),
        "",
    ),
    "plan": foreseen_document(foresee(View(MemoryStore(), FleetRules()))),
    "decision": decision_document(Decision(SEAT, "why")),
    "model": model_document(next(iter(load_catalog())), "here"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_key_is_documented(name: str) -> None:
    assert [key for key in keys(DOCUMENTS[name]) if key not in DOCS] == []


def test_every_command_and_state_is_documented() -> None:
    assert [
        name for name in (*COMMANDS, *map(str, State), *STATES, SEAT, LOAD, SERVE, SCALE) if name not in DOCS
    ] == []


def test_every_command_of_jobs_and_gpus_is_in_the_table() -> None:
    for group in (job, gpu):
        assert [name for name in group.commands if f"| `{group.name} {name}" not in DOCS] == []
