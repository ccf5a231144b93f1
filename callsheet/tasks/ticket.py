"""The task that a ticket starts on a GPU worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from celery import Task
from celery.exceptions import Ignore, Reject

from callsheet.app import app
from callsheet.records.jobs import Ticket
from callsheet.records.states import State


class Performer(Protocol):
    """What a GPU worker does with a ticket; set by the worker at boot."""

    def perform(self, ticket: Ticket) -> State | str:
        """Run one attempt, deliver its outcome and let the queue refill.

        Answers the job's state afterwards, or the reason why the ticket was refused.
        """
        ...

    def preload(self, lane: str) -> str:
        """Load a lane's weights with no job, if that is still desired. Answers what came of it."""
        ...


UNKNOWN = "unknown-format"  # the refusal of a ticket that a newer version wrote
PASS_ON_S = 0.5  # pause after a round of such tickets

_passed: set[str] = set()  # ids of the tickets that this process has passed on since its last pause

_make: Callable[[], Performer] | None = None
_performer: Performer | None = None


def set_performer(make: Callable[[], Performer]) -> None:
    """Say how this process runs attempts. ``make`` is called in the pool's child, at its first ticket."""
    global _make, _performer
    _make, _performer = make, None


def performer() -> Performer:
    """The performer of this process, made on first use."""
    global _performer
    if _performer is None:
        if _make is None:
            raise Reject("this worker owns no GPU: start it with `callsheet worker`", requeue=True)
        _performer = _make()
    return _performer


@app.task(
    name="callsheet.attempt", bind=True, shared=False, ignore_result=True, acks_late=True, max_retries=None
)
def attempt(
    self: Task, job_id: str, number: int, queue: str, format: int = 1, *more: Any, **named: Any
) -> dict[str, Any]:
    """Run the attempt that this ticket permits.

    Answers what Flower shows. A ticket without meaning (duplicate, redelivered, cancelled, re-routed) is
    rejected. ``more`` and ``named`` are what newer versions say beside: its format tells whether this one may
    pass it over.
    """
    ticket = Ticket(job_id, number, queue, format)
    if not _sound(ticket):
        raise Ignore("ticket refused: malformed")
    answer = performer().perform(ticket)
    if answer == UNKNOWN:
        pass_on(ticket, *more, **named)
    if not isinstance(answer, State):
        self.send_event("task-rejected", requeue=False)
        raise Ignore(f"ticket refused: {answer}")
    if answer is State.PENDING:
        self.send_event("task-retried", exception="handed back", traceback="")
        raise Ignore("handed back")
    return {"job": job_id, "state": str(answer)}


def send(ticket: Ticket, *more: Any, **named: Any) -> None:
    """Put one ticket into its Celery queue, under its own id. Raises what the broker's absence raises."""
    attempt.apply_async(
        args=(ticket.job_id, ticket.number, ticket.queue, ticket.format, *more),
        kwargs=named,
        task_id=ticket.id,
        queue=ticket.queue,
        routing_key=ticket.queue,
        declare=[],  # the worker that consumes it does; Redis needs none to publish
        ignore_result=True,
        retry=False,
        add_to_parent=False,
        argsrepr=f"({ticket.job_id}, ticket {ticket.number})",
        kwargsrepr="{}",
    )


def pass_on(ticket: Ticket, *more: Any, **named: Any) -> None:
    """Leave a ticket of a newer version to a newer worker: back into its queue, behind the others, whole.

    A ticket that is met again has gone round, and with it all that wait behind it: the pause then lets a
    newer worker take them first, and keeps a fleet without one from spinning. However many go round, this
    worker's own tickets wait for one pause and not for one each.
    """
    send(ticket, *more, **named)
    if ticket.id in _passed:
        _passed.clear()
        time.sleep(PASS_ON_S)
    _passed.add(ticket.id)


def _sound(ticket: Ticket) -> bool:
    """Whether a ticket that came over the wire has the types of one; formats are the store's to know."""
    texts, numbers = (ticket.job_id, ticket.queue), (ticket.number, ticket.format)
    return all(isinstance(text, str) for text in texts) and all(
        type(number) is int and 0 < number < 2**53 for number in numbers
    )
