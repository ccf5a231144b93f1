"""The controllers at work over a memory store, with a broker of plain lists."""

from __future__ import annotations

from typing import Any

from callsheet.artifacts.objects import open_objects
from callsheet.beat import controllers, rebalancer
from callsheet.beat.controllers import Hands
from callsheet.catalog import load_catalog
from callsheet.records.jobs import Ticket
from callsheet.records.states import State
from callsheet.routing.fleet import live_rules
from callsheet.settings import Settings
from callsheet.store.memory import MemoryStore
from callsheet.store.protocol import Store
from tests.support.clock import Clock
from tests.support.fleet import gpu
from tests.support.jobs import op


class Office:
    """Controllers over a memory store; what they publish lies in ``broker``."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = MemoryStore(self.clock)
        self.broker: dict[str, list[Ticket]] = {}
        self.delivered: list[str] = []
        self.objects = open_objects("memory://office")
        self.signals: list[tuple[str, str]] = []
        self.hands = Hands(
            self.store,
            Settings(),
            depth=self.depth,
            release=self.release,
            deliver=self.deliver,
            publish=self.publish,
            objects=lambda: self.objects,
            broker=lambda: None,
            fleet=live_rules(load_catalog(), Settings()),
            signal=lambda ticket_id, worker: self.signals.append((ticket_id, worker)),
        )

    def depth(self, queue: str) -> int:
        return len(self.broker.get(queue, []))

    def release(self, store: Store, queue: str) -> int:
        tickets = store.release(queue, op=op())
        return sum(self.publish(ticket) for ticket in tickets)

    def rebalance(self) -> int:
        """What a tick does: the plan, then tickets. Answers how many tickets."""
        rebalancer.rebalance_all(self.hands)
        return controllers.release_all(self.hands)

    def publish(self, ticket: Ticket) -> bool:
        self.broker.setdefault(ticket.queue, []).append(ticket)
        return True

    def deliver(self, store: Store, job_id: str) -> bool:
        self.delivered.append(job_id)
        return store.mark_delivered(job_id, names=[job_id], token="t")

    def join(self, gpu_class: str, **changes: Any) -> None:
        self.store.beat_gpu(gpu(gpu_class, **changes), ttl_s=10)

    def state(self, job_id: str) -> State:
        return self.store.get(job_id).state
