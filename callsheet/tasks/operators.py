"""What operators do to single jobs: make one again, or let one give up its GPU."""

from __future__ import annotations

import logging
import time
import uuid

from callsheet.app import app
from callsheet.errors import Refused, WaitTimeout
from callsheet.firing import AWAY
from callsheet.records.jobs import Job
from callsheet.records.states import State
from callsheet.store.protocol import Store
from callsheet.tasks.canvas import counting_app
from callsheet.tasks.deliver import AGAIN_S, BUSY_S
from callsheet.tasks.face import POLL_S
from callsheet.tasks.publish import release
from callsheet.tasks.revoke import signal_yield

log = logging.getLogger(__name__)

REQUEUED = (State.FAILED, State.CANCELLED)  # what a requeue makes again


def signed(reason: str, who: str) -> str:
    """A reason as it is kept in a job's history."""
    said = reason.strip() or "no reason given"
    return f"{said}, by {who}" if who else said


def requeue(
    store: Store,
    job_id: str,
    *,
    from_checkpoint: bool | None,
    reason: str,
    patience_s: float = BUSY_S + 1,
) -> State:
    """A failed or cancelled job is made again; its old outcome is forgotten, so that ``get()`` waits anew.

    From its newest checkpoint where it has one; True: only from there, False: from step 0. Answers the state
    it has now. Raises JobNotFound, Refused.
    """
    job = store.get(job_id)
    if from_checkpoint and job.checkpoint is None and job.state in REQUEUED:
        raise Refused(
            f"Job {job.id} has no checkpoint to go on from; nothing was changed. "
            "Requeue it with --from-start to make it from step 0."
        )
    _stop_delivery(store, job, patience_s)
    from_start = from_checkpoint is False
    state = store.requeue(job.id, from_start=from_start, reason=reason, op=uuid.uuid4().hex)
    forget_outcome(store, job)
    if state is not State.PENDING:
        return state
    release(store, job.queue)  # at once; what has no room goes at a later tick
    return store.get(job.id).state


def _stop_delivery(store: Store, job: Job, patience_s: float) -> None:
    """Nobody is delivering the old outcome from here on: it would come back after it was forgotten.

    The requeue gives the lock back. Raises Refused when somebody else has it for too long.
    """
    token, ends = uuid.uuid4().hex, time.monotonic() + patience_s
    while job.state in REQUEUED and not job.delivered and not job.erased:
        if store.lock_delivery(job.id, token=token, busy_s=AGAIN_S):
            return
        if time.monotonic() >= ends:
            raise Refused(
                f"The end of job {job.id} is being delivered just now; nothing was changed. "
                "Requeue it again in a moment."
            )
        time.sleep(POLL_S)
        job = store.get(job.id)


def forget_outcome(store: Store, job: Job) -> None:
    """Take a job's old outcome out of the result backends, under all its names."""
    for name, canvas in {job.id: job.canvas, **store.aliases(job.id)}.items():
        app.backend.forget(name)
        if canvas.get("counter"):
            try:
                counting_app(canvas).backend.forget(name)
            except AWAY as fault:
                log.warning("the old outcome of job %s stays in a host's backend: %s", name, fault)


def preempt(store: Store, job_id: str, *, reason: str) -> Job:
    """Tell the running attempt to save a checkpoint and give up its GPU at its next step.

    Answers the record as it was when it was told. Raises JobNotFound, Refused (it does not run).
    """
    job = store.get(job_id)
    if job.state is not State.RUNNING:
        raise _not_running(job)
    if not store.order(job.id, job.attempt, "yield", reason=reason, op=uuid.uuid4().hex):
        raise _not_running(store.get(job.id))  # it ended just now
    signal_yield(job.ticket_id, job.worker)
    return job


def wait_yielded(store: Store, told: Job, timeout: float | None, *, poll_s: float = POLL_S) -> Job:
    """Block until the attempt that was told has ended; answers the record then.

    Raises WaitTimeout, and Refused when the attempt cannot yield without losing work.
    """
    ends = None if timeout is None else time.monotonic() + timeout
    while True:
        job = store.get(told.id)
        if job.state is not State.RUNNING or job.attempt != told.attempt:
            return job
        if not job.order:
            raise Refused(
                f"job {job.id} goes on at {job.worker}: it cannot yield now without losing work. "
                f"`callsheet job show {job.id}` says why; cancel it if the GPU is needed at any price."
            )
        left = poll_s if ends is None else min(poll_s, ends - time.monotonic())
        if left <= 0:
            raise WaitTimeout(
                f"job {job.id} still runs at {job.worker} after {timeout:g} s. The order stands: it yields "
                "at its next step, or its worker ends it; look again with `callsheet job show`."
            )
        time.sleep(left)


def _not_running(job: Job) -> Refused:
    return Refused(
        f"Job {job.id} is {job.state}: only a running job has a GPU to give up; nothing was changed. "
        f"`callsheet job show {job.id}` says more."
    )
