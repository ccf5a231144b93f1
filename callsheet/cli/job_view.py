"""What the command line shows of jobs: a documented JSON shape, and tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from callsheet.cli.table import Column, Table
from callsheet.cli.words import NOTHING, moment, span
from callsheet.records.jobs import Checkpoint, Event, Job
from callsheet.records.requests import VideoRequest
from callsheet.records.states import State

_LIST = (
    Column("job"),
    Column("state"),
    Column("tier", spare=1),
    Column("tenant", spare=6),
    Column("model", spare=2),
    Column("queue", spare=4),
    Column("worker", spare=5),
    Column("steps", right=True),
    Column("wait", right=True, spare=3),
    Column("run", right=True, spare=7),
    Column("created", spare=8),
)


INEXACT = "no: close, not identical: resumed on another build"


def job_document(job: Job) -> dict[str, Any]:
    """One job as JSON. Keys and units: ``docs/cli.md``. What is not (yet) there is null."""
    return {
        "id": job.id,
        "state": str(job.state),
        "tier": job.tier,
        "tenant": job.request.tenant,
        "model": job.request.model,
        "queue": job.queue,
        "gpu_class": job.gpu_class,
        "need_gib": round(job.need_gib, 2),
        **_progress(job),
        **_steps_kept(job),
        **_times(job),
        **_costs(job),
        "film_url": job.film or None,
        "manifest_url": job.manifest or None,
        "frames_sha256": job.frames_sha256 or None,
        "error_type": job.error_type or None,
        "error": job.error or None,
        "erased": job.erased,
        "request": _request(job.request),
    }


def _progress(job: Job) -> dict[str, Any]:
    return {
        "worker": job.worker or None,
        "phase": job.phase or None,
        "progress": round(job.progress, 4),
        "step": job.step,
        "steps": job.steps or job.request.steps,
        "attempts": job.attempt,
        "crashes": job.crashes,
        "preemptions": job.preemptions,
    }


def _steps_kept(job: Job) -> dict[str, Any]:
    return {
        "exact": job.exact,
        "from_step": job.from_step,
        "checkpoint": _checkpoint(job.checkpoint) if job.checkpoint else None,
        "restarts": job.restarts,
        "waits_for_build": job.build if job.build and job.state is State.HELD else None,
    }


def _checkpoint(kept: Checkpoint) -> dict[str, Any]:
    return {"step": kept.step, "size_bytes": kept.size, "key": kept.key, "format": kept.format}


def _times(job: Job) -> dict[str, Any]:
    return {
        "created_at": job.created_at or None,
        "queued_at": job.queued_at or None,
        "started_at": job.started_at or None,
        "claimed_at": job.claimed_at or None,
        "ended_at": job.ended_at or None,
        "wait_s": _round(job.wait_s) if job.started_at else None,
        "run_s": _round(job.run_s) if job.ended_at and job.claimed_at else None,
    }


def _costs(job: Job) -> dict[str, Any]:
    return {
        "gpu_s_useful": _round(job.gpu_s_useful),
        "gpu_s_wasted": _round(job.gpu_s_wasted),
        "gpu_s_loading": _round(job.gpu_s_loading),
    }


def _request(request: VideoRequest) -> dict[str, Any]:
    return {
        "prompt": request.prompt,
        "negative_prompt": request.negative_prompt,
        "width_px": request.width,
        "height_px": request.height,
        "frames": request.frames,
        "fps": request.fps,
        "length_s": _round(request.seconds),
        "steps": request.steps,
        "guidance": request.guidance,
        "seed": request.seed,
        "deadline_at": request.deadline or None,
        "not_before_at": request.not_before or None,
        "idempotency_key": request.idempotency_key or None,
        "reproducible": request.reproducible or None,
    }


def event_document(event: Event) -> dict[str, Any]:
    """One transition as JSON."""
    return {
        "at": event.at,
        "kind": event.kind,
        "attempt": event.attempt,
        "worker": event.worker or None,
        "reason": event.reason or None,
    }


def job_list(jobs: Sequence[Job], empty: str = "no jobs") -> Table:
    """A line for each job."""
    return Table(_LIST, [_line(job) for job in jobs], empty=empty)


def _line(job: Job) -> tuple[str, ...]:
    return (
        job.id,
        str(job.state),
        job.tier,
        job.request.tenant,
        job.request.model,
        job.queue,
        job.worker or NOTHING,
        f"{job.step}/{job.steps or job.request.steps}",
        span(job.wait_s) if job.started_at else NOTHING,
        span(job.run_s) if job.ended_at and job.claimed_at else NOTHING,
        moment(job.created_at),
    )


def job_facts(job: Job, *, waits_for: str, now: float) -> Table:
    """Everything about one job; what does not apply is left out."""
    request = job.request
    facts = {
        "job": job.id,
        "state": str(job.state),
        "waits for": waits_for,
        "error": f"{job.error_type}: {job.error}" if job.error_type else job.error,
        "film": job.film,
        "manifest": job.manifest,
        "exact": "" if job.exact else INEXACT,
        "erased": "prompt, film and checkpoints, on request" if job.erased else "",
        "prompt": request.prompt,
        "negative": request.negative_prompt,
        "model": request.model,
        "picture": _picture(request),
        "sampling": f"{request.steps} steps, guidance {request.guidance:g}, seed {request.seed}",
        "tier": f"{request.tier}, tenant {request.tenant}",
        "queue": f"{job.queue}, needs {job.need_gib:.1f} GiB: class {job.gpu_class} or larger",
        "progress": f"{job.step}/{job.steps or request.steps} steps",
        "worker": f"{job.worker} ({job.phase})" if job.phase and not job.ended else job.worker,
        "attempts": _attempts(job),
        "checkpoint": _kept(job),
        "restarts": _restarts(job),
        "waited": _waited(job, now),
        "ran": _ran(job, now),
        "GPU time": _gpu_time(job),
        "created": moment(job.created_at),
        "ended": moment(job.ended_at) if job.ended_at else "",
        "deadline": moment(request.deadline) if request.deadline else "",
        "not before": moment(request.not_before) if request.not_before else "",
        "promise": f"reproducible={request.reproducible}" if request.reproducible else "",
        "key": request.idempotency_key,
        "frames hash": job.frames_sha256,
    }
    columns = (Column("fact"), Column("value", wraps=True))
    return Table(columns, [(name, text) for name, text in facts.items() if text], bare=True)


def history(events: Sequence[Event]) -> Table:
    """What happened to a job, oldest first."""
    columns = (
        Column("at"),
        Column("event"),
        Column("attempt", right=True, spare=2),
        Column("worker", spare=1),
        Column("reason", wraps=True),
    )
    rows = [
        (moment(e.at), e.kind, str(e.attempt or NOTHING), e.worker or NOTHING, e.reason or NOTHING)
        for e in events
    ]
    return Table(columns, rows, title="History")


def _picture(request: VideoRequest) -> str:
    size = f"{request.width}x{request.height}"
    return f"{size}, {request.frames} frames at {request.fps} fps ({request.seconds:.2f} s)"


def _attempts(job: Job) -> str:
    if not job.attempt:
        return ""
    return f"{job.attempt} ({job.crashes} lost with their worker, {job.preemptions} preempted)"


def _kept(job: Job) -> str:
    """The newest checkpoint, and where the newest attempt began."""
    began = f"the newest attempt began at step {job.from_step}" if job.from_step else ""
    kept = f"step {job.checkpoint.step}, {job.checkpoint.size / 1e6:.1f} MB" if job.checkpoint else ""
    return "; ".join(filter(None, (kept, began)))


def _restarts(job: Job) -> str:
    return f"{job.restarts}: kept steps were given up, the history says why" if job.restarts else ""


def _waited(job: Job, now: float) -> str:
    if job.started_at:
        return span(job.wait_s)
    return (
        f"{span((job.ended_at or now) - job.created_at)}, never started"
        if job.ended
        else (f"{span(now - job.created_at)} so far")
    )


def _ran(job: Job, now: float) -> str:
    if not job.claimed_at:
        return ""
    return span(job.run_s) if job.ended_at else f"{span(now - job.claimed_at)} so far" if job.phase else ""


def _gpu_time(job: Job) -> str:
    if not (job.gpu_s_useful or job.gpu_s_wasted or job.gpu_s_loading):
        return ""
    return (
        f"{job.gpu_s_useful:.1f} s useful, {job.gpu_s_wasted:.1f} s wasted, "
        f"{job.gpu_s_loading:.1f} s loading weights"
    )


def _round(seconds: float) -> float:
    return round(seconds, 3)
