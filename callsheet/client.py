"""The one door for faces (command line, HTTP, dashboard): submit, look, cancel, wait, download."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from callsheet import wiring
from callsheet.catalog import Catalog
from callsheet.errors import CallsheetError
from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Event, Job
from callsheet.records.states import State
from callsheet.settings import Settings
from callsheet.store.protocol import Page
from callsheet.tasks.generate import generate_video
from callsheet.tasks.job import VideoJob
from callsheet.tasks.outcome import value_of


class Client:
    """A callsheet deployment, seen from outside.

    Every verb raises Unreachable when the store does not answer.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        """With ``settings`` the whole process uses them from now on."""
        if settings is not None:
            wiring.configure(settings)

    @property
    def settings(self) -> Settings:
        """The settings in use."""
        return wiring.settings()

    @property
    def catalog(self) -> Catalog:
        """The models that can be served."""
        return wiring.catalog()

    def submit(self, **request: Any) -> VideoJob:
        """Submit one job: the arguments of ``generate_video.delay``.

        Raises RequestError (every fault at once), NoGpuFits, IdempotencyConflict.
        """
        job = generate_video.delay(**request)
        assert isinstance(job, VideoJob)
        return job

    def job(self, job_id: str) -> VideoJob:
        """The handle of a job; nothing is looked up yet."""
        return generate_video.AsyncResult(job_id)

    def get(self, job_id: str) -> Job:
        """The record. Raises JobNotFound."""
        return wiring.store().get(job_id)

    def list_jobs(
        self, *, state: State | None = None, tenant: str = "", limit: int = 50, cursor: str = ""
    ) -> Page:
        """One page of jobs, newest first."""
        return wiring.store().list_jobs(state=state, tenant=tenant, limit=limit, cursor=cursor)

    def events(self, job_id: str) -> list[Event]:
        """The job's history, oldest first. Raises JobNotFound."""
        return wiring.store().events(job_id)

    def cancel(self, job_id: str, *, reason: str = "cancelled by its owner") -> State:
        """Cancel a job, queued or running. Answers the state it has now. Raises JobNotFound."""
        return wiring.store().cancel(job_id, reason=reason, op=uuid.uuid4().hex)

    def watch(
        self, job_id: str, *, timeout: float | None = None, on_look: Callable[[Job], None] | None = None
    ) -> Job:
        """Block until the job has ended and answer its record, however it ended.

        Raises WaitTimeout, JobNotFound.
        """
        return self.job(job_id).wait_ended(timeout, on_look=on_look)

    def download(self, job_id: str, path: str | Path) -> Path:
        """Write the film to a file or into a folder. Raises Refused, JobFailed, StorageError, JobNotFound."""
        return self.job(job_id).download(path)

    def error(self, job: Job) -> CallsheetError | None:
        """The error of an ended job; None when it succeeded."""
        value = value_of(job)
        return value if isinstance(value, CallsheetError) else None

    def gpus(self) -> list[Gpu]:
        """GPUs whose worker is alive."""
        return wiring.store().gpus()

    def counts(self) -> dict[State, int]:
        """Jobs per state."""
        return wiring.store().counts()

    def backlog(self) -> dict[str, int]:
        """Waiting jobs per queue."""
        return wiring.store().backlog()
