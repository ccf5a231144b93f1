"""Preemption of real jobs on real workers: whenever it comes, the film is the undisturbed one."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.app import app
from tests.support.theatre import Theatre

pytestmark = [pytest.mark.torch, pytest.mark.chaos]

STEPS = 4


def revoke(theatre: Theatre, job_id: str) -> None:
    """The controllers' signal, for the ticket that runs."""
    job = theatre.store.get(job_id)
    signal: dict[str, Any] = {"terminate": True, "signal": "SIGUSR1", "destination": [job.worker]}
    app.control.revoke(job.ticket_id, **signal)


@pytest.mark.parametrize("model", ["tiny-wan", "tiny-ltx"])
@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_preempted_at_a_step_it_goes_on_there(theatre: Theatre, model: str, step: int) -> None:
    job = theatre.stopped_at(f"step {step}", model=model)
    revoke(theatre, job.id)
    record = theatre.check_whole(job, model=model)
    assert (record.from_step, record.preemptions, record.crashes, record.restarts) == (step, 1, 0, 0)
    rows = theatre.store.attempts(job.id)
    assert [(row.end, row.from_step, row.to_step) for row in rows] == [
        ("handed-back", 0, step),
        ("succeeded", step, STEPS),
    ]
