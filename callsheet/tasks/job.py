"""``VideoJob``: the AsyncResult of a video job, which knows the record."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from celery import states
from celery.exceptions import TimeoutError as CeleryTimeout
from celery.result import AsyncResult
from kombu.exceptions import OperationalError
from redis.exceptions import ConnectionError as RedisConnectionError

from callsheet import wiring
from callsheet.artifacts.objects import Objects
from callsheet.errors import JobNotFound, Unreachable
from callsheet.records.states import CELERY
from callsheet.store.protocol import Store
from callsheet.tasks.face import JobFace

AWAY_S = 30.0  # how long get() outlives a store that does not answer
LOOK_S = 2.0  # get() is told when the job ends, and looks for itself so often: a message can be lost


class VideoJob(JobFace, AsyncResult):
    """An AsyncResult whose id is the job's, across any number of attempts.

    ``state`` is Celery's word (PENDING, STARTED, SUCCESS, FAILURE, REVOKED), ``status`` is callsheet's
    (pending, queued, running, succeeded ...). An id that nobody submitted raises JobNotFound instead of
    pending for ever.
    """

    @property
    def supports_native_join(self) -> bool:
        """False: each result of a group is asked for alone, since a host's lie in another backend."""
        return False

    #: A canvas will submit it once what stands before it has ended: no record yet is no fault.
    expected = False

    _away_since = 0.0  # monotonic seconds; 0 = the store answered last time

    def _store(self) -> Store:
        return wiring.store()

    def _objects(self) -> Objects:
        return wiring.objects()

    @property
    def status(self) -> str:
        """The job's state in callsheet's words."""
        try:
            return str(self.record.state)
        except JobNotFound:
            if self._may_come:
                return "pending"
            raise

    def wait(self, timeout: float | None = None, *, progress: bool = False, **kwargs: Any) -> Any:
        """Block for the result; ``progress=True`` shows a bar on stderr.

        Raises JobFailed, JobCancelled, WaitTimeout, JobNotFound. Takes what ``get`` takes, too.
        """
        if kwargs or self._may_come:
            return self.get(timeout, **kwargs)
        return self.wait_result(timeout, progress=progress)

    def get(self, timeout: float | None = None, **kwargs: Any) -> Any:
        """As Celery's ``get``, but an unknown id raises JobNotFound, and a store that restarts is waited
        for.
        """
        self._must_exist()
        ends = None if timeout is None else time.monotonic() + timeout
        away_until: float | None = None
        while True:
            began = time.monotonic()
            slice_s = LOOK_S if ends is None else min(max(ends - began, 0.0), LOOK_S)
            try:
                return super().get(slice_s, **kwargs)
            except CeleryTimeout:
                if (
                    slice_s < LOOK_S or time.monotonic() - began < slice_s
                ):  # the last one, or the job's own error
                    raise
            except (RedisConnectionError, OperationalError) as fault:
                now = time.monotonic()
                away_until = away_until or now + AWAY_S
                if now >= away_until or (ends is not None and now >= ends):
                    raise _unreachable(self.id, fault) from fault
                time.sleep(0.2)

    def maybe_throw(self, propagate: bool = True, callback: Any = None) -> Any:
        """Celery's hook while somebody waits for what follows this job: its error, if it has one.

        A store that does not answer tells nothing, as a job that goes on; raises Unreachable once it has
        been away for long.
        """
        try:
            value = super().maybe_throw(propagate=propagate, callback=callback)
        except (Unreachable, RedisConnectionError, OperationalError):
            now = time.monotonic()
            self._away_since = self._away_since or now
            if now - self._away_since >= AWAY_S:
                raise
            return None
        self._away_since = 0.0
        return value

    maybe_reraise = maybe_throw

    def revoke(self, *_args: Any, **_kwargs: Any) -> None:
        """Cancel the job: Celery's word for it."""
        self.cancel(reason="revoked")

    def __del__(self) -> None:
        """Let go of the result's subscription; a store that is gone by now is no reason to complain."""
        with suppress(Exception):
            super().__del__()

    def _must_exist(self) -> None:
        if self._cache is None and not self._may_come and self._find_meta()["status"] == states.PENDING:
            self.job_id  # noqa: B018  raises JobNotFound

    @property
    def _may_come(self) -> bool:
        return self.expected or self.parent is not None

    def _get_task_meta(self) -> dict[str, Any]:
        if self._cache is not None:
            return dict(self._cache)
        meta = self._find_meta()
        if meta["status"] in states.READY_STATES:
            return dict(super()._maybe_set_cache(meta))
        try:
            state = CELERY[self.record.state]
        except JobNotFound:
            if not self._may_come:
                raise
            state = states.PENDING
        shown = state if state not in states.READY_STATES else states.STARTED  # delivery is under way
        return {**meta, "status": shown}

    def _maybe_set_cache(self, meta: dict[str, Any] | None) -> Any:
        """Believe no message of a bad end that the backend does not hold: a requeue may have come since.

        Such a message waited in Celery's buffer, or in the socket, until somebody asked again.
        """
        if meta and meta["status"] in states.PROPAGATE_STATES:
            meta = self.backend.get_task_meta(self.id)  # its errors as they are: get() outlives them
        return super()._maybe_set_cache(meta)

    def _find_meta(self) -> dict[str, Any]:
        try:
            meta: dict[str, Any] = self.backend.get_task_meta(self.id)
        except (RedisConnectionError, OperationalError) as fault:
            raise _unreachable(self.id, fault) from fault
        return meta


def _unreachable(job_id: str, fault: Exception) -> Unreachable:
    return Unreachable(
        f"the store does not answer ({fault}); job {job_id} is not touched by that: ask again when it is back"
    )


__all__ = ["VideoJob"]
