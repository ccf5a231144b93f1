"""Preemption of real jobs on real workers: whenever it comes, the film is the undisturbed one."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from typing import Any

import pytest
from celery.app.control import Control
from celery.result import AsyncResult

from callsheet.app import app
from callsheet.errors import JobCancelled
from callsheet.records.jobs import Job
from callsheet.records.states import State
from callsheet.settings import to_env
from tests.support.live import until
from tests.support.theatre import Theatre

pytestmark = [pytest.mark.torch, pytest.mark.chaos]

STEPS = 4


def revoke(theatre: Theatre, job_id: str, held: Job | None = None) -> None:
    """The controllers' signal, for the ticket that runs, or that ran when its record was ``held``."""
    job = held or theatre.store.get(job_id)
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


@pytest.mark.parametrize("model", ["tiny-wan", "tiny-ltx"])
def test_preempted_twice_it_is_resumed_twice(theatre: Theatre, model: str) -> None:
    job = theatre.stopped_at("step 1", "step 3", model=model)
    revoke(theatre, job.id)
    theatre.wait_at(job.id, "step 3")
    revoke(theatre, job.id)
    record = theatre.check_whole(job, model=model)
    assert (record.from_step, record.preemptions, record.attempt) == (3, 2, 3)


@pytest.mark.parametrize("phase", ["load", "encode"])
def test_preempted_before_its_first_step_it_loses_nothing(theatre: Theatre, phase: str) -> None:
    job = theatre.stopped_at(f"phase {phase}")
    revoke(theatre, job.id)
    record = theatre.check_whole(job)
    assert (record.from_step, record.preemptions) == (0, 1)


@pytest.mark.parametrize("phase", ["decode", "store"])
def test_near_its_end_it_ends_instead(theatre: Theatre, phase: str) -> None:
    job = theatre.stopped_at(f"phase {phase}")
    revoke(theatre, job.id)
    record = theatre.check_whole(job)
    assert (record.attempt, record.preemptions) == (1, 0)


def test_the_same_order_twice_is_one(theatre: Theatre) -> None:
    job = theatre.stopped_at("step 2")
    held = theatre.store.get(job.id)
    for _ in range(2):
        theatre.store.order(job.id, held.attempt, "yield", reason="test", op=uuid.uuid4().hex)
        revoke(theatre, job.id, held)  # the first may have been obeyed by now: the next ticket is none of it
    record = theatre.check_whole(job)
    assert (record.from_step, record.preemptions, record.attempt) == (2, 1, 2)


def test_an_order_for_a_finished_job_or_an_old_ticket_does_nothing(theatre: Theatre) -> None:
    job = theatre.submit()
    before = theatre.check_whole(job)
    revoke(theatre, job.id)
    other = theatre.stopped_at("step 1")
    app.control.revoke(
        f"{other.id}.0",
        terminate=True,
        signal="SIGUSR1",
        destination=[theatre.record(other).worker],
        reply=True,
    )
    assert theatre.record(other).order == ""
    theatre.open_gate(other.id)
    assert theatre.check_whole(other).preemptions == 0
    assert theatre.record(job) == before


def test_the_waiter_never_sees_revoked(theatre: Theatre) -> None:
    """Neither our handle nor plain Celery's; and the weights stay."""
    job = theatre.stopped_at("step 2")
    plain = AsyncResult(job.id, app=app)
    child = theatre.child_of(theatre.record(job).worker.partition("@")[0])
    revoke(theatre, job.id)
    seen = set()

    def ended() -> bool:
        seen.add(plain.state)
        return bool(plain.ready())

    until(ended, within_s=60.0)
    assert "REVOKED" not in seen
    first = theatre.store.attempts(job.id)[0]
    assert theatre.child_of(first.worker.partition("@")[0]) == child
    assert theatre.check_whole(job).attempt == 2


def test_a_waiting_pro_job_takes_the_gpu_of_a_free_one(theatre: Theatre) -> None:
    """No hand in it: the submit asks the controllers, they order, the heir is the next one there."""
    free = [theatre.stopped_at("step 2", seed=seed) for seed in (1, 2)]
    pro = theatre.submit(tier="pro", seed=3)
    theatre.check_whole(pro, seed=3)
    for job in free:
        theatre.open_gate(job.id)
    records = [theatre.check_whole(job, seed=seed) for job, seed in zip(free, (1, 2), strict=True)]
    told = [list(theatre.store.events(job.id)) for job in (pro, *free)]
    assert sorted(record.preemptions for record in records) == [0, 1], told
    heir = theatre.record(pro)
    victim = next(record for record in records if record.preemptions)
    assert heir.worker == theatre.store.attempts(victim.id)[0].worker
    assert [event.kind for event in theatre.store.events(pro.id)].count("assigned") == 1


@pytest.mark.parametrize("word", ["by ticket", "by job", "plain AsyncResult", "terminate"])
def test_any_other_revoke_cancels_for_good(theatre: Theatre, word: str) -> None:
    job = theatre.stopped_at("step 2")
    ticket = theatre.record(job).ticket_id
    if word == "plain AsyncResult":
        AsyncResult(job.id, app=app).revoke()
    elif word == "terminate":
        app.control.revoke(ticket, terminate=True, signal="SIGKILL")
    else:
        Control.revoke(app.control, ticket if word == "by ticket" else job.id)  # as another app's Flower
    record = until(lambda: (r := theatre.record(job)).ended and r, what="cancelled")
    assert record.state is State.CANCELLED
    with pytest.raises(JobCancelled):
        job.get(timeout=30)
    assert theatre.check_whole(theatre.submit()).attempt == 1  # the workers live


def test_a_queued_job_is_cancelled_by_a_revoke_and_never_revived(theatre: Theatre) -> None:
    held = [theatre.stopped_at("step 1", seed=seed) for seed in (1, 2)]
    job = theatre.submit(seed=3)
    until(lambda: theatre.record(job).state is State.QUEUED)
    Control.revoke(app.control, theatre.record(job).ticket_id)
    until(lambda: theatre.record(job).state is State.CANCELLED)
    for one in held:
        theatre.open_gate(one.id)
    for one, seed in zip(held, (1, 2), strict=True):
        theatre.check_whole(one, seed=seed)
    assert theatre.record(job).attempt == 0


def test_a_celery_command_line_revoke_is_a_cancel(theatre: Theatre) -> None:
    job = theatre.stopped_at("step 2")
    command = [sys.executable, "-m", "celery", "-A", "callsheet.app", "control", "revoke", job.id]
    subprocess.run(command, env={**os.environ, **to_env(theatre.settings)}, check=True, timeout=60)
    until(lambda: theatre.record(job).state is State.CANCELLED)
