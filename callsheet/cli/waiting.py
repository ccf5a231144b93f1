"""Why a job waits, in one sentence. Pure: what was seen of the fleet comes in as arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from callsheet.cli.words import count, moment
from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Job
from callsheet.records.states import State


def waits_for(job: Job, gpus: Sequence[Gpu], *, ahead: int | None) -> str:
    """What a waiting job waits for, and what to do if that is up to somebody; "" for any other job.

    ``ahead``: jobs before it in its backlog; None when it is not among those that were looked at.
    """
    if job.state is State.HELD:
        until = job.request.not_before
        return f"its start at {moment(until)}" if until else "an operator, who holds it"
    if job.state not in (State.PENDING, State.QUEUED):
        return ""
    serving = [gpu for gpu in gpus if job.queue in gpu.queues]
    if not serving:
        return _nobody(job, gpus)
    free = sum(not gpu.job_id for gpu in serving)
    workers = f"{count(len(serving), 'worker')} of queue {job.queue}, {free} free"
    if job.state is State.QUEUED:
        return f"the next free one of {workers}"
    return f"{_before(ahead)}; {workers}"


def _before(ahead: int | None) -> str:
    if ahead is None:
        return "many jobs before it"
    return f"{count(ahead, 'job')} before it" if ahead else "its release: it is the first of its queue"


def _nobody(job: Job, gpus: Sequence[Gpu]) -> str:
    need = f"{job.need_gib:.1f} GiB, class {job.gpu_class} or larger"
    if not gpus:
        return f"a GPU worker: none is alive. Start one (`callsheet worker`) with a GPU of {need}"
    alive = ", ".join(
        f"{number} x {name}" for name, number in sorted(Counter(g.gpu_class for g in gpus).items())
    )
    return f"a worker of queue {job.queue}: none is alive ({alive} are). Start one with a GPU of {need}"
