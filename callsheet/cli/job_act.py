"""``callsheet job``: what changes a job that is there: cancel, requeue, preempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from callsheet.cli.door import client
from callsheet.cli.failures import REFUSED
from callsheet.cli.options import Span, common, signed
from callsheet.cli.output import emit, say
from callsheet.records.states import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callsheet.client import Client
    from callsheet.records.jobs import Job

_reason = click.option("--reason", default="", help="Kept in the job's history, with who said it.")


@click.command()
@click.argument("job_ids", metavar="JOB...", nargs=-1, required=True)
@click.option("--erase", is_flag=True, help="Delete prompt, film and checkpoints, too, however it ended.")
@_reason
@signed
@common
def cancel(job_ids: tuple[str, ...], erase: bool, reason: str, who: str) -> int:
    """Cancel jobs, waiting or running. A job that has ended otherwise keeps its state (exit code 6)."""
    door = client()
    found = _find(door, job_ids)
    for one in found:
        door.cancel(one.id, reason=reason, who=who, erase=erase)
    jobs = _show(door, found)
    kept = [one for one in jobs if one.state is not State.CANCELLED and not erase]
    for one in kept:
        say(f"Error: job {one.id} had ended before: it stays {one.state}")
    return REFUSED if kept else 0


@click.command()
@click.argument("job_ids", metavar="JOB...", nargs=-1, required=True)
@click.option("--from-checkpoint", is_flag=True, help="Only from its newest checkpoint.")
@click.option(
    "--from-start", is_flag=True, help="Make every step again (default: its checkpoint if it has one)."
)
@_reason
@signed
@common
def requeue(job_ids: tuple[str, ...], from_checkpoint: bool, from_start: bool, reason: str, who: str) -> int:
    """Make failed or cancelled jobs again, under the same id. Any other job is left alone (exit code 6)."""
    if from_checkpoint and from_start:
        raise click.UsageError("a job goes on from its checkpoint, or from the start: leave out one of them")
    where = True if from_checkpoint else False if from_start else None
    door = client()
    found = _find(door, job_ids)
    faults = [_requeue(door, one, where, reason, who) for one in found]
    _show(door, found)
    for fault in filter(None, faults):
        say(f"Error: {fault}")
    return REFUSED if any(faults) else 0


def _requeue(door: Client, job: Job, from_checkpoint: bool | None, reason: str, who: str) -> str:
    """Why the job was not requeued; "" when it was."""
    from callsheet.errors import Refused

    try:
        door.requeue(job.id, from_checkpoint=from_checkpoint, reason=reason, who=who)
    except Refused as fault:
        return str(fault)
    return ""


@click.command()
@click.argument("job_id", metavar="JOB")
@click.option("--wait", is_flag=True, help="Until its attempt has ended.")
@click.option("--timeout", type=Span(), help="Longest wait (90s, 10m); the order stands, exit code 4.")
@_reason
@signed
@common
def preempt(job_id: str, wait: bool, timeout: float | None, reason: str, who: str) -> None:
    """Let a running job save a checkpoint, give up its GPU at its next step, and wait for another."""
    door = client()
    told = door.preempt(job_id, reason=reason, who=who)
    say(f"job {told.id} is told to yield {told.worker} at its next step (it is at {told.step}/{told.steps})")
    if wait or timeout is not None:
        door.wait_yielded(told, timeout=timeout)
    _emit_one(door.get(told.id))


def _find(door: Client, job_ids: Sequence[str]) -> list[Job]:
    """The records, each once: all exist, or nothing is done. Raises JobNotFound."""
    found = [door.get(job_id) for job_id in job_ids]
    return list({one.id: one for one in found}.values())


def _show(door: Client, found: Sequence[Job]) -> list[Job]:
    from callsheet.cli.job_view import job_document, job_list

    jobs = [door.get(one.id) for one in found]
    emit({"jobs": [job_document(one) for one in jobs]}, job_list(jobs))
    return jobs


def _emit_one(now: Job) -> None:
    from callsheet.cli.job_view import job_document, job_list

    emit({"job": job_document(now)}, job_list([now]))
