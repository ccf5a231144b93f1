"""A job's outcome as Celery and the caller see it: a result value or an exception."""

from __future__ import annotations

from typing import Any

from callsheet.errors import CallsheetError, JobCancelled, JobExpired, JobFailed
from callsheet.records.jobs import Job
from callsheet.records.states import State


def result_of(job: Job) -> dict[str, Any]:
    """The value that ``get()`` returns for a job that succeeded."""
    return {
        "job_id": job.id,
        "film": job.film,
        "manifest": job.manifest,
        "frames_sha256": job.frames_sha256,
        "model": job.request.model,
        "width": job.request.width,
        "height": job.request.height,
        "frames": job.request.frames,
        "fps": job.request.fps,
        "seed": job.request.seed,
        "attempts": job.attempt,
    }


def error_of(job: Job) -> CallsheetError:
    """The exception that ``get()`` raises for a job that did not succeed."""
    if job.state is State.CANCELLED:
        return JobCancelled(
            job.error or f"job {job.id} was cancelled; submit it again, or requeue it, to render it"
        )
    if job.state is State.EXPIRED:
        return JobExpired(
            job.error or f"job {job.id} did not start by its deadline; submit it again with a later one"
        )
    own = JobFailed.__name__
    kind = f"{job.error_type}: " if job.error_type not in ("", own) else ""
    return JobFailed(f"job {job.id} failed: {kind}{job.error or 'no reason recorded'}")


def value_of(job: Job) -> dict[str, Any] | CallsheetError:
    """Result or exception of an ended job."""
    return result_of(job) if job.state is State.SUCCEEDED else error_of(job)
