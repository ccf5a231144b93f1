"""Running a job in this process: ``task_always_eager``, ``.apply()`` and a plain call.

The same path as a worker's, with the in-memory store in place of Redis: no broker, no server.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from celery.result import EagerResult

from callsheet import wiring
from callsheet.artifacts.objects import Objects
from callsheet.errors import CallsheetError, JobNotFound
from callsheet.records.jobs import Job
from callsheet.store.memory import MemoryStore
from callsheet.store.protocol import Store
from callsheet.tasks.face import JobFace
from callsheet.tasks.outcome import value_of
from callsheet.tasks.submit import Extras, Submitter

#: Found by name, since this room stands below the workers' and producers must not load torch.
PERFORMER = "callsheet.workers.perform"

_one_at_a_time = threading.Lock()
_store: MemoryStore | None = None


def eager_store() -> MemoryStore:
    """The memory of the jobs that ran in this process."""
    global _store
    if _store is None:
        _store = MemoryStore(retention_s=wiring.settings().retention_s)
    return _store


def record_here(arguments: Mapping[str, Any], job_id: str) -> None:
    """Validate and record one job under this id. Raises RequestError, NoGpuFits, IdempotencyConflict."""
    submitter = Submitter(eager_store(), wiring.catalog(), wiring.settings(), publish=None)
    submitter.submit(arguments, Extras(task_id=job_id))


def run_here(job_id: str) -> Job:
    """Run a recorded job here and now, unless it has ended. Answers its record at the end."""
    store = eager_store()
    with _one_at_a_time:
        job = store.get(job_id)
        if not job.ended:
            perform = import_module(PERFORMER).perform_here
            store.set_quotas({job.queue: 1}, op=uuid.uuid4().hex)
            for ticket in store.release(job.queue, op=uuid.uuid4().hex):
                perform(ticket, store)
    return store.get(job_id)


def is_recorded(job_id: str) -> bool:
    """Whether a job of this process has that id."""
    try:
        return bool(eager_store().resolve(job_id))
    except JobNotFound:
        return False


def result_or_raise(job: Job) -> dict[str, Any]:
    """What the task function returns for an ended job."""
    value = value_of(job)
    if isinstance(value, CallsheetError):
        raise value
    return value


class EagerVideoJob(JobFace, EagerResult):
    """The result of a job that ran in this process; asks like a VideoJob."""

    def _store(self) -> Store:
        return eager_store()

    def _objects(self) -> Objects:
        return wiring.objects()

    @property
    def status(self) -> str:
        """The job's state in callsheet's words."""
        return str(self.record.state)

    def wait(self, timeout: float | None = None, **kwargs: Any) -> Any:
        """The result, or the job's error raised; it has ended already."""
        kwargs.pop("progress", None)
        return self.get(timeout, **kwargs)
