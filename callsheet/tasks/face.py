"""What a caller can ask of one job, whatever stands behind it (a worker far away, or this process)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from callsheet.artifacts.films import fetch_film
from callsheet.artifacts.objects import Objects
from callsheet.errors import CallsheetError, Refused, WaitTimeout
from callsheet.records.jobs import Job
from callsheet.records.states import State
from callsheet.store.protocol import Store
from callsheet.tasks.erasure import erase as erase_job
from callsheet.tasks.outcome import value_of
from callsheet.tasks.progress import show_progress

POLL_S = 0.2


class JobFace:
    """Mixed into Celery's result classes, which bring ``id``."""

    id: str

    def _store(self) -> Store:
        raise NotImplementedError

    def _objects(self) -> Objects:
        raise NotImplementedError

    @property
    def record(self) -> Job:
        """The job's record as it is now. Raises JobNotFound, Unreachable."""
        return self._store().get(self.id)

    @property
    def job_id(self) -> str:
        """The job's id.

        Differs from ``id`` when this is another name for the first job under an idempotency key.
        """
        return self._store().resolve(self.id)

    @property
    def progress(self) -> float:
        """Share of the denoising steps done, 0 .. 1; 1 only when the film is stored."""
        return self.record.progress

    @property
    def tier(self) -> str:
        """Service class: pro or free."""
        return self.record.tier

    @property
    def gpu_class(self) -> str:
        """Smallest GPU class that the job fits."""
        return self.record.gpu_class

    @property
    def attempts(self) -> int:
        """How many times a worker began it."""
        return self.record.attempt

    def cancel(self, reason: str = "cancelled by its owner", *, erase: bool = False) -> State:
        """Cancel it, queued or running: terminal at once, the worker follows within a step.

        ``erase``: its prompt, film and checkpoints are deleted, too, also when it had ended before.
        Answers the state it has now; an ended job keeps its own. Raises StorageError when the film cannot be
        deleted now.
        """
        state = self._store().cancel(self.id, reason=reason, op=uuid.uuid4().hex)
        if erase:
            erase_job(self._store(), self._objects(), self.job_id)
        return state

    def download(self, path: str | Path) -> Path:
        """Write the film to ``path`` (a file, or a folder that gets ``<job>.mp4``); whole or not at all.

        Raises Refused while the job has not succeeded, StorageError when the film cannot be read.
        """
        job = self.record
        if job.ended and job.state is not State.SUCCEEDED:
            raise _raised(job)
        if not job.ended:
            raise Refused(f"job {job.id} is {job.state}: there is no film yet; call wait() first")
        return fetch_film(self._objects(), job.film, path, name=f"{job.id}.mp4")

    def wait_ended(
        self,
        timeout: float | None = None,
        *,
        on_look: Callable[[Job], None] | None = None,
        poll_s: float = POLL_S,
    ) -> Job:
        """Block until the job has ended; ``on_look`` sees every record on the way. Raises WaitTimeout."""
        ends = None if timeout is None else time.monotonic() + timeout
        while True:
            job = self.record
            if on_look is not None:
                on_look(job)
            if job.ended:
                return job
            left = poll_s if ends is None else min(poll_s, ends - time.monotonic())
            if left <= 0:
                raise WaitTimeout(
                    f"job {job.id} is still {job.state} after {timeout} s; it goes on, wait again for it"
                )
            time.sleep(left)

    def wait_result(self, timeout: float | None = None, *, progress: bool = False) -> dict[str, Any]:
        """Block for the result, with a progress bar on stderr if asked.

        Raises JobFailed, JobCancelled, JobExpired, WaitTimeout, JobNotFound.
        """
        if progress:
            with show_progress() as on_look:
                job = self.wait_ended(timeout, on_look=on_look)
        else:
            job = self.wait_ended(timeout)
        value = value_of(job)
        if isinstance(value, CallsheetError):
            raise value
        return value


def _raised(job: Job) -> CallsheetError:
    value = value_of(job)
    assert isinstance(value, CallsheetError)
    return value
