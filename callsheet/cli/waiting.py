"""Why a job waits, in one sentence. Pure: what was seen of the fleet comes in as arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence

from callsheet.cli.words import count, moment
from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Job
from callsheet.records.states import State
from callsheet.routing.classes import covers


def waits_for(job: Job, gpus: Sequence[Gpu], *, ahead: int | None, orders: Container[str] = ()) -> str:
    """What a waiting job waits for, and what to do if that is up to somebody; "" for any other job.

    ``ahead``: jobs before it in its backlog; None when it is not among those that were looked at.
    ``orders``: names of the GPUs that take nothing new.
    """
    if job.state is State.HELD:
        return _held(job, gpus, orders)
    if job.state not in (State.PENDING, State.QUEUED):
        return ""
    taking, shut = _servers(job, gpus, orders)
    if not taking:
        able = [gpu for gpu in gpus if gpu.name not in orders and _covers(gpu, job)]
        if able:
            return (
                f"a GPU that loads its model: {count(len(able), 'GPU')} could (`callsheet explain {job.id}`)"
            )
        return _cordoned(f"queue {job.queue}", shut) if shut else _nobody(job, gpus)
    free = sum(not gpu.job_id for gpu in taking)
    workers = f"{count(len(taking), 'worker')} of queue {job.queue}, {free} free"
    if job.state is State.QUEUED:
        return f"the next free one of {workers}"
    return f"{_before(ahead)}; {workers}"


def _servers(job: Job, gpus: Sequence[Gpu], orders: Container[str]) -> tuple[list[Gpu], list[Gpu]]:
    """(GPUs that serve its queue, those that would if no operator kept jobs away).

    A worker whose GPU is cordoned names no queues.
    """
    taking = [gpu for gpu in gpus if gpu.name not in orders and job.queue in gpu.queues]
    shut = [gpu for gpu in gpus if gpu.name in orders and _covers(gpu, job)]
    return taking, shut


def _covers(gpu: Gpu, job: Job) -> bool:
    return covers(gpu.vram_gib, gpu.gpu_class, job.gpu_class)


def _held(job: Job, gpus: Sequence[Gpu], orders: Container[str]) -> str:
    if job.build:
        return _build(job, gpus, orders)
    until = job.request.not_before
    return f"its start at {moment(until)}" if until else "an operator, who holds it"


def _build(job: Job, gpus: Sequence[Gpu], orders: Container[str]) -> str:
    """A strict job goes on only where its film comes out bit for bit."""
    taking, shut = _servers(job, [gpu for gpu in gpus if gpu.build == job.build], orders)
    if taking:
        free = sum(not gpu.job_id for gpu in taking)
        return f"{count(len(taking), 'worker')} of its build {job.build} (reproducible=strict), {free} free"
    if shut:
        return _cordoned(f"its build {job.build} (reproducible=strict)", shut)
    return (
        f"a worker of its build {job.build} (reproducible=strict): none is alive. Start one with the same "
        f"kind of GPU and packages, or give its {count(job.step, 'step')} up: "
        f"`callsheet job cancel {job.id}`, then `callsheet job requeue {job.id} --from-start`"
    )


def _cordoned(what: str, gpus: Sequence[Gpu]) -> str:
    names = " ".join(gpu.name for gpu in gpus)
    verb = "is" if len(gpus) == 1 else "are all"
    return (
        f"a worker of {what} that takes jobs: {count(len(gpus), 'worker')} {verb} cordoned or drained "
        f"(`callsheet gpu list` says why). Start another, or: `callsheet gpu uncordon {names}`"
    )


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
