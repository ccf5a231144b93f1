"""docs/cli.md names every command, key and exit code that there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from callsheet.catalog import load_catalog
from callsheet.cli.job_view import event_document, job_document
from callsheet.cli.model_view import model_document
from callsheet.cli.root import COMMANDS
from callsheet.records.jobs import Event, Job
from callsheet.records.states import State
from tests.support.jobs import request

DOCS = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def keys(document: Mapping[str, Any]) -> Iterator[str]:
    for key, value in document.items():
        yield key
        if isinstance(value, Mapping):
            yield from keys(value)


DOCUMENTS = {
    "job": job_document(Job("j", State.PENDING, request(), 1.0, "t4", "free.t4")),
    "event": event_document(Event(0.0, "submitted", 0, "", "")),
    "model": model_document(next(iter(load_catalog())), "here"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_key_is_documented(name: str) -> None:
    assert [key for key in keys(DOCUMENTS[name]) if key not in DOCS] == []


def test_every_command_and_state_is_documented() -> None:
    assert [name for name in (*COMMANDS, *map(str, State)) if name not in DOCS] == []
