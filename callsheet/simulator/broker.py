"""Celery's queues in memory: tickets in order, and the idle workers that wait for them."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Protocol

from callsheet.records.jobs import Ticket


class Taker(Protocol):
    """Who waits at queues."""

    def take(self, ticket: Ticket) -> None:
        """It is yours."""
        ...


class Broker:
    """First in, first out; of several idle workers the one that has waited longest gets the ticket."""

    def __init__(self) -> None:
        self._tickets: defaultdict[str, deque[Ticket]] = defaultdict(deque)
        self._takers: defaultdict[str, dict[Taker, None]] = defaultdict(dict)
        self._places: dict[Taker, tuple[str, ...]] = {}

    def publish(self, ticket: Ticket) -> bool:
        """To whoever waits at its queue, or into it."""
        taker = next(iter(self._takers[ticket.queue]), None)
        if taker is None:
            self._tickets[ticket.queue].append(ticket)
        else:
            self.leave(taker)
            taker.take(ticket)
        return True

    def depth(self, queue: str) -> int:
        """Tickets in a queue."""
        return len(self._tickets[queue])

    def first(self, queues: Iterable[str]) -> Ticket | None:
        """The first ticket of the first queue that has one."""
        for queue in queues:
            if self._tickets.get(queue):
                return self._tickets[queue].popleft()
        return None

    def wait(self, taker: Taker, queues: tuple[str, ...]) -> None:
        """Stand at these queues until a ticket comes."""
        self.leave(taker)
        self._places[taker] = queues
        for queue in queues:
            self._takers[queue][taker] = None

    def leave(self, taker: Taker) -> None:
        """Stand nowhere any more."""
        for queue in self._places.pop(taker, ()):
            self._takers[queue].pop(taker, None)
