"""One worker's child in this process: a performer over a store and object storage that a test may disturb."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from callsheet.artifacts.objects import Objects
from callsheet.catalog import load_catalog
from callsheet.records.jobs import Job, Ticket
from callsheet.records.states import State
from callsheet.settings import Settings
from callsheet.store.memory import MemoryStore
from callsheet.workers.journal import StoreJournal
from callsheet.workers.perform import Performer
from callsheet.workers.resident import ResidentModels
from tests.support.jobs import QUEUE, kinds, op, queued

torch.set_num_threads(1)  # two threads on a busy machine are fifty times slower at this size
RESIDENT = ResidentModels(2)  # loaded once for all stages of a session


class StageJournal(StoreJournal):
    """Does something at a step, or in a phase, before the order is read; then makes an order of its own."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store, lease_s=3.0)
        self.at: dict[int | str, Callable[[], object]] = {}
        self.told = ""  # an order that comes from the worker itself, as "leave" does

    def begin(self, lease: Any) -> None:
        """An attempt begins."""
        self.told = ""
        super().begin(lease)

    def step(self, done: int, total: int, step_s: float = 0.0) -> None:
        """Steps finished, of how many."""
        self.at.pop(done, lambda: None)()
        super().step(done, total, step_s)

    def phase(self, name: str) -> None:
        """What it does now."""
        self.at.pop(name, lambda: None)()
        super().phase(name)

    def order(self) -> str:
        """The order for this attempt."""
        return self.told or super().order()


class Stage:
    """Runs the attempts of tiny jobs, one after the other, on ``store`` (in memory) and ``objects``."""

    def __init__(self, folder: Path, models: Path, objects: Objects, **settings: Any) -> None:
        self.store, self.objects = MemoryStore(), objects
        self.journal = StageJournal(self.store)
        self.performer = Performer(
            store=self.store,
            objects=lambda: self.objects,
            catalog=load_catalog("", models),
            settings=Settings(data_dir=folder, **{"storage_patience_s": 0.0, **settings}),
            resident=RESIDENT,
            journal=self.journal,
            worker="h100-0@test",
        )

    def job(self, **changes: Any) -> Ticket:
        """The ticket of a small job of 4 steps."""
        return queued(self.store, **{"steps": 4, "frames": 5, **changes})

    def run(self, ticket: Ticket) -> Job:
        """One attempt. Answers the record after it."""
        self.performer.perform(ticket)
        return self.record(ticket)

    def again(self, ticket: Ticket) -> Ticket:
        """A new ticket for a job that was handed back."""
        assert self.record(ticket).state is State.PENDING
        (found,) = self.store.release(ticket.queue, op=op())
        assert found.job_id == ticket.job_id
        return found

    def record(self, ticket: Ticket) -> Job:
        """The job's record."""
        return self.store.get(ticket.job_id)

    def yield_now(self, ticket: Ticket) -> None:
        """Order its running attempt to yield."""
        job = self.record(ticket)
        assert self.store.order(job.id, job.attempt, "yield", reason="test", op=op())

    def leave(self) -> None:
        """The worker ends, as at SIGTERM."""
        self.journal.told = "leave"

    def reasons(self, ticket: Ticket, kind: str) -> list[str]:
        """Why the events of one kind happened, oldest first."""
        return [event.reason for event in self.store.events(ticket.job_id) if event.kind == kind]

    def kinds(self, ticket: Ticket) -> list[str]:
        """Kinds of its events."""
        return kinds(self.store, ticket.job_id)


__all__ = ["QUEUE", "Stage", "StageJournal"]
