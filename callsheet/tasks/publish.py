"""Publishing tickets. Only ``release`` publishes: a message is a ticket, the record is the truth."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable

from kombu.exceptions import OperationalError

from callsheet.app import CONTROL_QUEUE, app
from callsheet.records.jobs import Ticket
from callsheet.settings import urls
from callsheet.store.protocol import Store
from callsheet.tasks.ticket import send

log = logging.getLogger(__name__)

TICK = "callsheet.tick"  # the controllers' task
REBALANCE = "rebalance"  # its round that chooses victims


def publish(ticket: Ticket) -> bool:
    """Put one ticket into its Celery queue. False when the broker does not answer: the reaper heals it."""
    try:
        send(ticket)
    except (OperationalError, OSError) as fault:
        said = urls.untrusted(fault) or fault
        log.warning("ticket %s not published (%s): the job waits and gets a new ticket", ticket.id, said)
        return False
    return True


def send_tick(name: str) -> None:
    """Ask the controllers for one tick of a round. Raises OperationalError, OSError without a broker."""
    app.send_task(
        TICK,
        args=(name,),
        queue=CONTROL_QUEUE,
        routing_key=CONTROL_QUEUE,
        ignore_result=True,
        retry=False,
        add_to_parent=False,
    )


def ask_rebalance() -> None:
    """Let a controller look at once, not at its next tick. Without a broker the next tick must do."""
    try:
        send_tick(REBALANCE)
    except (OperationalError, OSError) as fault:
        log.warning("no controller was asked to look at once (%s)", urls.untrusted(fault) or fault)


def release(store: Store, queue: str) -> int:
    """Release what the queue's quota allows and publish the tickets. Answers how many were published."""
    return publish_all(store.release(queue, op=uuid.uuid4().hex))


def publish_all(tickets: Iterable[Ticket]) -> int:
    """Publish what was released. Answers how many were published.

    A broker that does not answer is asked once: the other tickets are healed as lost ones are.
    """
    published = 0
    for ticket in tickets:
        if not publish(ticket):
            break
        published += 1
    return published
