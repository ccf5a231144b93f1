"""Controllers that choose a job's very worker: for heirs of a preemption, and for strict jobs.

A job that is chosen for a worker gets a ticket in that worker's direct queue, into which the worker looks
first.
"""

from __future__ import annotations

from collections.abc import Iterable

from callsheet.beat.controllers import Hands, op, takers
from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Job
from callsheet.records.requests import PREEMPTING
from callsheet.routing.preemption import Preemption, Seat, preemptions
from callsheet.routing.queues import direct_queue, parse_queue, worker_of

LOOKED_AT = 200  # waiting jobs of one queue that one rebalance looks at
VAIN_S = 3.0  # a promise to a worker that goes on with another job is taken back then
STRICT_S = 60.0  # a strict job waits so long for a busy worker of its build before another is chosen


def rebalance(hands: Hands) -> int:
    """Waiting jobs of a preempting tier get the GPUs that the rule gives them. Answers how many yield."""
    hands.store.take_urgent()
    waiting = _waiting(hands)
    if not waiting:
        return 0
    return sum(_preempt(hands, decision) for decision in preemptions(waiting, seats(hands)))


def match(hands: Hands) -> int:
    """Strict jobs are sent to a worker that resumes them bit for bit; an idle one is preferred."""
    parked = hands.store.parked()
    if not parked:
        return 0
    sent, free = 0, {seat.gpu.name: seat for seat in seats(hands) if not seat.promised}
    for job in parked:
        fitting = [seat for seat in free.values() if seat.gpu.build == job.build and _holds(seat.gpu, job)]
        seat = min(fitting, key=lambda one: one.job is not None, default=None)
        if seat is not None:
            del free[seat.gpu.name]
            sent += _send(hands, job, seat.gpu, f"its build {job.build} is here")
    return sent


def take_back(hands: Hands) -> int:
    """Tickets in direct queues whose worker is gone, cordoned, or busy with something else go back."""
    taken, by_name = 0, {seat.gpu.name: seat for seat in seats(hands)}
    for queue in hands.store.published():
        worker = worker_of(queue)
        if worker:
            older_s, reason = _patience(hands, queue, by_name.get(worker))
            taken += len(hands.store.heal(queue, older_s=older_s, reason=reason, op=op()))
    return taken


def seats(hands: Hands) -> list[Seat]:
    """The GPUs that take jobs."""
    store = hands.store
    at_work = {job.worker: job for job in store.running()}
    promised = {worker_of(queue) for queue in store.published()}
    return [Seat(gpu, at_work.get(gpu.name), gpu.name in promised) for gpu in takers(store)]


def _waiting(hands: Hands) -> list[Job]:
    """Jobs that wait in a queue of a preempting tier, with a ticket or without."""
    store = hands.store
    ids: list[str] = []
    for look, queues in ((store.backlog_jobs, store.backlog()), (store.published_jobs, store.published())):
        for queue in _of_preempting_tiers(queues):
            ids += look(queue, LOOKED_AT)
    return [job for job in store.get_many(ids) if job is not None and not job.ended]


def _of_preempting_tiers(queues: Iterable[str]) -> list[str]:
    return [queue for queue in queues if not worker_of(queue) and parse_queue(queue).tier in PREEMPTING]


def _preempt(hands: Hands, decision: Preemption) -> bool:
    victim, gpu, heir = decision.victim, decision.gpu, decision.heir
    if not hands.store.order(victim.id, victim.attempt, "yield", reason=decision.reason, op=op()):
        return False  # it has just ended: its GPU is idle
    hands.signal(victim.ticket_id, gpu.name)
    _send(hands, heir, gpu, f"job {victim.id} yields to it")
    return True


def _send(hands: Hands, job: Job, gpu: Gpu, reason: str) -> bool:
    ticket = hands.store.assign(job.id, direct_queue(gpu.name), reason=reason, op=op())
    return ticket is not None and hands.publish(ticket)


def _holds(gpu: Gpu, job: Job) -> bool:
    return job.queue in gpu.queues


def _patience(hands: Hands, queue: str, seat: Seat | None) -> tuple[float, str]:
    """After how many seconds a ticket in this direct queue goes back, and why."""
    if seat is None:
        return 0.0, "its worker is gone or cordoned"
    if seat.job is None or seat.job.order:
        lost = hands.depth(queue) == 0
        return (hands.settings.heal_after_s, "its ticket was lost") if lost else (STRICT_S, "not taken")
    jobs = hands.store.get_many(hands.store.published_jobs(queue))
    strict = any(job is not None and job.build for job in jobs)
    return (STRICT_S if strict else VAIN_S), "its worker goes on with another job"
