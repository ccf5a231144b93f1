"""One attempt while it runs: the steps it is told of, the orders it obeys, the steps it keeps."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from callsheet.errors import Fenced, StorageError, Unreachable
from callsheet.store.protocol import Lease, Store
from callsheet.workers.clocks import Clocks
from callsheet.workers.insist import insist
from callsheet.workers.journal import Journal
from callsheet.workers.keeping import Keeping
from callsheet.workers.replay import NotReplayable, Snapshot
from callsheet.workers.saver import Saver

log = logging.getLogger(__name__)

DEAF_S = 3.0  # after a yield that had to be declined, orders to yield go unheard for so long
TRIES = 2  # of a save on which a yield depends

Take = Callable[[], Snapshot]


class Stopped(Exception):
    """An order ended the attempt at a step: yield, drain, leave, cancel or fenced."""

    def __init__(self, order: str, reason: str = "") -> None:
        super().__init__(order)
        self.order = order
        self.reason = reason
        self.kept_s = 0.0  # GPU-seconds of the attempt that its checkpoints keep


@dataclass
class RunningAttempt:
    """The callbacks of one render."""

    lease: Lease
    store: Store
    journal: Journal
    clocks: Clocks
    keeping: Keeping
    saver: Saver
    resumed: bool = False
    deaf_until: float = 0.0

    def on_phase(self, name: str) -> None:
        """A phase begins. From the decode on the end is near: only who is not wanted any more stops."""
        if name == "denoise":
            self.clocks.steps_begin(resumed=self.resumed)
        self.journal.phase(name)
        order = self.journal.order()
        if order in ("cancel", "fenced") or (order and name not in ("decode", "store")):
            raise Stopped(order, "before its next step")

    def on_step(self, done: int, total: int, take: Take) -> None:
        """A step has ended."""
        self.clocks.step_ended()
        self.journal.step(done, total, self.clocks.step_s())
        order = self.journal.order()
        if order in ("cancel", "fenced"):
            raise Stopped(order)
        if order and not (order == "yield" and time.monotonic() < self.deaf_until):
            self._give_way(order, take)
        else:
            self.saver.step_ended(take, self.clocks.useful_s)

    def _give_way(self, order: str, take: Take) -> None:
        """Keep this step and stop. A yield that would lose work is declined; who must leave goes anyway."""
        try:
            snapshot = take()
        except NotReplayable as refusal:
            raise Stopped(order, f"without a checkpoint: {refusal}") from None
        fault = self._save(snapshot)
        if not fault:
            raise Stopped(order, f"at step {snapshot.step}")
        if order != "yield":
            kept = self.keeping.kept_step
            raise Stopped(order, f"at step {kept}, as step {snapshot.step} was not saved: {fault}")
        log.warning("job %s goes on: %s", self.lease.job.id, fault)
        self.deaf_until = time.monotonic() + DEAF_S
        reason = f"step {snapshot.step} could not be saved: {fault}"
        insist(
            lambda op: self.store.decline(
                self.lease.job.id, self.lease.attempt, self.lease.token, reason=reason, op=op
            )
        )
        self.journal.decline()

    def _save(self, snapshot: Snapshot) -> str:
        """Save now. Answers what went wrong. Raises Stopped when a newer attempt owns the job."""
        fault = ""
        for _ in range(TRIES):
            try:
                self.keeping.save(snapshot, self.clocks.useful_s())
            except Fenced:
                raise Stopped("fenced") from None
            except (StorageError, Unreachable) as error:
                fault = str(error)
            else:
                return ""
        return fault
