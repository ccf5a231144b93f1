"""Controllers of the direct queues: strict jobs get into one, and promises that came to nothing out of it.

A job that is chosen for a worker has a ticket in that worker's direct queue, into which the worker looks
first.
"""

from __future__ import annotations

from callsheet.beat.controllers import Hands, op
from callsheet.beat.look import seats
from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Job
from callsheet.routing.queues import direct_queue, parse_queue, worker_of
from callsheet.routing.seats import Seat
from callsheet.routing.targets import runs

VAIN_S = 3.0  # a promise to a worker that goes on with another job is taken back then
STRICT_S = 60.0  # a strict job waits so long for a busy worker of its build before another is chosen


def match(hands: Hands) -> int:
    """Strict jobs are sent to a worker that resumes them bit for bit; an idle one is preferred."""
    parked = hands.store.parked()
    if not parked:
        return 0
    sent, free = 0, {seat.gpu.name: seat for seat in seats(hands) if not seat.promised}
    for job in parked:
        fitting = [
            seat for seat in free.values() if seat.gpu.build == job.build and _holds(hands, seat.gpu, job)
        ]
        seat = min(fitting, key=lambda one: one.job is not None, default=None)
        if seat is not None:
            del free[seat.gpu.name]
            sent += _send(hands, job, seat.gpu, f"its build {job.build} is here")
    return sent


def take_back(hands: Hands) -> int:
    """Tickets in direct queues whose worker is gone, cordoned, or busy with something else go back."""
    workers = {queue: worker for queue in hands.store.published() if (worker := worker_of(queue))}
    if not workers:
        return 0
    taken, by_name = 0, {seat.gpu.name: seat for seat in seats(hands)}
    for queue, worker in workers.items():
        older_s, reason = _patience(hands, queue, by_name.get(worker))
        taken += len(hands.store.heal(queue, older_s=older_s, reason=reason, op=op()))
    return taken


def _send(hands: Hands, job: Job, gpu: Gpu, reason: str) -> bool:
    ticket = hands.store.assign(job.id, direct_queue(gpu.name), reason=reason, ticket=job.ticket, op=op())
    return ticket is not None and hands.publish(ticket)


def _holds(hands: Hands, gpu: Gpu, job: Job) -> bool:
    queue = parse_queue(job.queue)
    return runs(hands.fleet.lanes.get(queue.lane), gpu, queue.gpu_class)


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
