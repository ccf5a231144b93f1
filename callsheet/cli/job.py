"""``callsheet job``: submit, list, show, watch, download; what changes a job is in ``job_act.py``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callsheet.cli.door import client
from callsheet.cli.failures import FAILED, TIMEOUT
from callsheet.cli.group import Group
from callsheet.cli.job_act import cancel, preempt, requeue
from callsheet.cli.options import Moment, Span, common, json_wanted
from callsheet.cli.output import emit, say
from callsheet.cli.words import count
from callsheet.records.requests import TIERS
from callsheet.records.states import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callsheet.client import Client
    from callsheet.records.jobs import Job

MAX_STDIN_CHARS = 200_001  # above every limit that the settings allow, so that a longer prompt is told
LOOKED_AT = 1000  # jobs at the front of a backlog among which a job's place is searched


@click.group(cls=Group)
@common
def job() -> None:
    """Submit jobs, follow them, fetch their films."""


# -- submit --------------------------------------------------------------------------------------------------


@job.command()
@click.argument("prompt", required=False)
@click.option("--model", help="Name in the catalog: see `callsheet models`.")
@click.option("--negative-prompt", help="What the film shall not show.")
@click.option("--size", help="Picture size, as 832x480.")
@click.option("--width", type=int, help="Pixels, instead of --size.")
@click.option("--height", type=int, help="Pixels, instead of --size.")
@click.option("--frames", type=int, help="Length in frames.")
@click.option("--seconds", type=float, help="Length in seconds, instead of --frames.")
@click.option("--fps", type=int, help="Frames per second.")
@click.option("--steps", type=int, help="Denoising steps.")
@click.option("--guidance", type=float, help="Guidance scale.")
@click.option("--seed", type=int, help="Same seed, same film. Drawn when left out.")
@click.option("--tier", help=f"Service class: {', '.join(TIERS)} (default: free).")
@click.option("--tenant", help="Who is served and counted (default: default).")
@click.option(
    "--deadline", type=Moment(), help="Expires unless started by then: 10m from now, or an ISO time."
)
@click.option(
    "--reproducible",
    help="strict: resumed only where the film comes out bit for bit, also if that takes longer.",
)
@click.option("--idempotency-key", help="Submitting again under the same key answers the first job.")
@click.option("--wait", is_flag=True, help="Wait for the end, with progress on stderr.")
@click.option("--timeout", type=Span(), help="Longest wait (90s, 10m); the job goes on, exit code 4.")
@click.option(
    "--download", "path", type=click.Path(), help="Wait, then write the film to this file or folder."
)
@click.option("--force", is_flag=True, help="Let --download overwrite a file.")
@common
def submit(
    prompt: str | None, wait: bool, timeout: float | None, path: str | None, force: bool, **request: Any
) -> int:
    """Submit one job and print its id. PROMPT may be - to read it from stdin."""
    request["prompt"] = sys.stdin.read(MAX_STDIN_CHARS).rstrip("\r\n") if prompt == "-" else prompt
    if path is not None:
        _refuse_overwrite(Path(path), force)  # before anything is stored
    door = client()
    submitted = door.submit(**{name: value for name, value in request.items() if value is not None})
    if json_wanted():
        say(f"submitted {submitted.id}")  # the document may come much later, or never
    else:
        print(submitted.id, flush=True)
    if wait or path is not None or timeout is not None:
        return _follow(door, submitted.id, timeout, path, force)
    now = door.get(submitted.id)
    if json_wanted():
        _emit_job(now)
    elif sys.stderr.isatty():
        say(f"{now.state} for {now.queue}; follow it with: callsheet job watch {now.id}")
    return 0


def _follow(door: Client, job_id: str, timeout: float | None, path: str | None, force: bool) -> int:
    """Wait for one job and fetch its film; answers the exit code."""
    done = _watch(door, [job_id], timeout)
    if path is not None and done[0].state is State.SUCCEEDED:
        say(f"film: {_fetch(door, done[0], path, force)}")
    if json_wanted():
        _emit_job(done[0])
    return _tell_ends(door, done, timeout)


def _emit_job(now: Job) -> None:
    from callsheet.cli.job_view import job_document

    emit({"job": job_document(now)})


# -- looking -------------------------------------------------------------------------------------------------


@job.command("list")
@click.option("--state", type=click.Choice(list(map(str, State))), help="Only jobs in this state.")
@click.option("--tier", type=click.Choice(TIERS), help="Only this service class.")
@click.option("--tenant", default="", help="Only this tenant.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Jobs at most.")
@click.option("--cursor", default="", help="Go on where the page before ended.")
@common
def list_(state: str | None, tier: str | None, tenant: str, limit: int, cursor: str) -> None:
    """List jobs, newest first."""
    from callsheet.cli.job_view import job_document, job_list

    page = client().list_jobs(
        state=State(state) if state else None, tier=tier or "", tenant=tenant, limit=limit, cursor=cursor
    )
    document = {"jobs": [job_document(one) for one in page.jobs], "cursor": page.cursor or None}
    emit(document, job_list(page.jobs))
    if page.cursor and not json_wanted():
        say(f"there are more: --cursor {page.cursor}")


@job.command()
@click.argument("job_id", metavar="JOB")
@common
def show(job_id: str) -> None:
    """Show one job: its record, what it waits for, its attempts and history, and where its film is."""
    from callsheet.cli.attempt_view import attempt_document, attempts
    from callsheet.cli.job_view import event_document, history, job_document, job_facts

    door = client()
    found = door.get(job_id)
    events, ended = door.events(found.id), door.attempts(found.id)
    why = "" if found.ended else _waits_for(door, found)
    document = {
        "job": job_document(found),
        "waits_for": why or None,
        "attempts_ended": [attempt_document(attempt) for attempt in ended],
        "events": [event_document(event) for event in events],
    }
    emit(document, job_facts(found, waits_for=why, now=door.now()), attempts(ended), history(events))


def _waits_for(door: Client, found: Job) -> str:
    from callsheet.cli.waiting import waits_for

    return waits_for(found, door.gpus(), ahead=_ahead(door, found), orders=door.gpu_orders())


def _ahead(door: Client, found: Job) -> int | None:
    """Jobs before it in its backlog."""
    if found.state is not State.PENDING:
        return None
    front = door.backlog_jobs(found.queue, LOOKED_AT)
    return front.index(found.id) if found.id in front else None


@job.command()
@click.argument("job_ids", metavar="JOB...", nargs=-1, required=True)
@click.option("--timeout", type=Span(), help="Longest wait (90s, 10m); the jobs go on, exit code 4.")
@common
def watch(job_ids: tuple[str, ...], timeout: float | None) -> int:
    """Follow jobs until all have ended: 0 all succeeded, 1 one did not, 4 timeout."""
    from callsheet.cli.job_view import job_document, job_list

    door = client()
    jobs = _watch(door, list(dict.fromkeys(job_ids)), timeout)
    emit({"jobs": [job_document(one) for one in jobs]}, job_list(jobs))
    return _tell_ends(door, jobs, timeout)


def _watch(door: Client, job_ids: list[str], timeout: float | None) -> list[Job]:
    from callsheet.tasks.progress import show_progress

    with show_progress() as on_look:
        return door.watch_all(job_ids, timeout=timeout, on_look=on_look)


def _tell_ends(door: Client, jobs: Sequence[Job], timeout: float | None) -> int:
    """Say which jobs did not succeed, and why; answers the exit code."""
    errors = [error for one in jobs if one.ended and (error := door.error(one)) is not None]
    for error in errors:
        say(f"Error: {error}")
    going_on = [one for one in jobs if not one.ended]
    if going_on:
        say(f"Error: {count(len(going_on), 'job')} not ended after {timeout:g} s. They go on: watch again")
    return FAILED if errors else TIMEOUT if going_on else 0


# -- acting, and the film ------------------------------------------------------------------------------------

for act in (cancel, requeue, preempt):
    job.add_command(act)


@job.command()
@click.argument("job_id", metavar="JOB")
@click.argument("path", type=click.Path(), default=".")
@click.option("--force", is_flag=True, help="Overwrite a file.")
@common
def download(job_id: str, path: str, force: bool) -> None:
    """Write a job's film to PATH, a file or a folder (default: here, as JOB.mp4), and print where it is."""
    door = client()
    found = door.get(job_id)
    target = _fetch(door, found, path, force)
    if json_wanted():
        emit({"job_id": found.id, "path": str(target.absolute()), "bytes": target.stat().st_size})
    else:
        print(target)


def _fetch(door: Client, found: Job, path: str, force: bool) -> Path:
    """The film, whole or not at all. Raises Refused, JobFailed, StorageError."""
    target = Path(path)
    if path.endswith("/") or target.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        target /= f"{found.id}.mp4"
    _refuse_overwrite(target, force)
    return door.download(found.id, target)


def _refuse_overwrite(target: Path, force: bool) -> None:
    from callsheet.errors import Refused

    if target.exists() and not target.is_dir() and not force:
        raise Refused(
            f"{target} exists and was not touched; add --force to overwrite it, or name another file"
        )
