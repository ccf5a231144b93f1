"""The store in one process: for tests, the simulator and eager mode.

Public, and held to the same contract as the one in Redis.
"""
# ruff: noqa: D102, ARG002 - the protocol documents the verbs; ``once`` reads ``op``

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from callsheet.records.jobs import (
    NOTHING,
    Checkpoint,
    Job,
    NewJob,
    Outcome,
    Spent,
    Submitted,
    Ticket,
)
from callsheet.records.states import State
from callsheet.store import attempts, rules
from callsheet.store.ledger import Entry, overdue
from callsheet.store.memory_books import MemoryBooks
from callsheet.store.protocol import ClaimRefused, Lease, Store
from callsheet.store.steps import atomic, once


class MemoryStore(MemoryBooks, Store):
    """See :class:`~callsheet.store.protocol.Store` for the verbs. Safe for threads.

    ``clock`` answers seconds since the epoch; ``retention_s``: how long a record outlives its end.
    """

    # -- the life of a job -----------------------------------------------------------------------------------

    @once
    def submit(self, job: NewJob, *, op: str, alias: bool = False, release: bool = False) -> Submitted:
        rules.check_submit(job, op)
        named = self._ledger.find(job.id)
        key = (job.request.tenant, job.request.idempotency_key)
        first = named or self._ledger.entries.get(self._ledger.idem.get(key, ""))
        if first is None:
            entry = self._ledger.open(job, self._now)
            releasing = release and entry.job.state is State.PENDING
            tickets = tuple(self._release(job.queue)) if releasing else ()
            asks = rules.is_urgent(job) and entry.job.state is not State.HELD
            return Submitted(job.id, created=True, urgent=asks and self._ask_urgently(), tickets=tickets)
        if first.body_hash != job.body_hash:
            raise rules.conflict(job, first.job.id)
        if alias and not named:
            self._add_name(first, job)
        return Submitted(job_id=first.job.id, created=False)

    def _add_name(self, first: Entry, other: NewJob) -> None:
        first.aliases[other.id] = other.canvas
        self._ledger.names[other.id] = first.job.id
        self._ledger.note(first, "aliased", other.id, self._now)
        if first.job.ended:
            self._ledger.undelivered[first.job.id] = None
            first.job = replace(first.job, delivered=False)

    @once
    def release(self, queue: str, *, op: str) -> list[Ticket]:
        return self._release(queue)

    def _release(self, queue: str) -> list[Ticket]:
        ledger = self._ledger
        places = self._places(queue)
        tickets: list[Ticket] = []
        for _ in range(rules.RELEASE_MAX):
            front = ledger.backlogs[queue].first(1)
            if len(tickets) >= len(places) or not front:
                break
            entry = ledger.entries[front[0]]
            if overdue(entry.job, self._now):
                ledger.expire(entry, self._now)
                continue
            tickets.append(attempts.publish(ledger, entry, places[len(tickets)], self._now))
        return tickets

    def _places(self, backlog: str) -> list[str]:
        """Queues with room for a ticket of this backlog, once for each ticket, in the order of its route."""
        return [
            queue
            for queue in self._routes.get(backlog, (backlog,))
            for _ in range(self._quotas.get(queue, 0) - len(self._ledger.published[queue]))
        ]

    @atomic
    def claim(
        self, ticket: Ticket, *, worker: str, token: str, lease_s: float, build: str = ""
    ) -> Lease | ClaimRefused:
        rules.check_op(token)
        if self._answered_before(token):
            return cast(ClaimRefused, self._answer_once(token, lambda: None))
        self._witness()
        entry = self._ledger.entries.get(ticket.job_id)
        reason = attempts.refusal(entry.job if entry else None, ticket, token)
        if entry is not None and reason == attempts.UNKNOWN:
            self._ledger.unlist(entry)
        if entry is None or reason:
            return ClaimRefused(reason)
        if entry.job.state is State.QUEUED:
            if reason := self._turned_away(entry, worker, build):
                return cast(ClaimRefused, self._answer_once(token, lambda: ClaimRefused(reason)))
            attempts.claim(self._ledger, entry, token, lease_s, worker, self._now)
        job, mean_s = entry.job, attempts.mean_s_between_losses(self._ledger)
        return Lease(job, job.attempt, token, job.lease_until, mean_s_between_losses=mean_s)

    def _turned_away(self, entry: Entry, worker: str, build: str) -> str:
        """Why this worker does not get the job, which then waits elsewhere; "" when it does."""
        job = entry.job
        if overdue(job, self._now):
            self._ledger.expire(entry, self._now)
            return "expired"
        if order := self._orders.get(worker):
            self._ledger.move(entry, State.PENDING, "returned", f"{worker} is {order.action}", self._now)
            return "cordoned"
        if job.build and job.build != build:
            reason = f"waits for a worker of build {job.build}"
            self._ledger.move(entry, State.HELD, "held", reason, self._now)
            return "other-build"
        return ""

    @atomic
    def renew(
        self,
        job_id: str,
        attempt: int,
        token: str,
        *,
        lease_s: float,
        step: int,
        steps: int,
        phase: str,
        loading_s: float = 0.0,
        step_s: float = 0.0,
        worker: str = "",
    ) -> str:
        self._witness()
        entry = self._ledger.entries.get(job_id)
        if entry is None:
            return "fenced"
        told = {"step": step, "steps": steps, "phase": phase, "step_s": rules.micro(step_s)}
        owner = attempts.Owner((attempt, token), worker, lease_s, loading_s)
        return attempts.renew(self._ledger, entry, owner, told, self._now)

    @once
    def keep_checkpoint(
        self, job_id: str, attempt: int, token: str, checkpoint: Checkpoint, *, useful_s: float, op: str
    ) -> list[Checkpoint] | None:
        entry = self._owned(job_id, attempt, token)
        return attempts.keep(entry, checkpoint, useful_s) if entry else None

    @once
    def start_from(
        self, job_id: str, attempt: int, token: str, *, step: int, exact: bool, reason: str, op: str
    ) -> bool:
        entry = self._owned(job_id, attempt, token)
        if entry is None:
            return False
        attempts.start_from(entry, step, exact=exact)
        self._ledger.note(entry, "resumed" if step else "restarted", reason, self._now)
        return True

    @once
    def decline(self, job_id: str, attempt: int, token: str, *, reason: str, op: str) -> bool:
        entry = self._owned(job_id, attempt, token)
        if entry is None:
            return False
        entry.job = replace(entry.job, order="")
        self._ledger.note(entry, "declined", reason, self._now)
        return True

    @once
    def finish(self, job_id: str, attempt: int, token: str, outcome: Outcome, *, op: str) -> bool:
        rules.check_outcome(outcome)
        entry = self._owned(job_id, attempt, token)
        if entry is None:
            return False
        changes = attempts.results(entry.job, outcome)
        if outcome.state is State.SUCCEEDED:  # its objects go
            changes |= {"checkpoint": None, "checkpoint_before": None, "build": ""}
        end, step = outcome.state.value, outcome.step or entry.job.step
        changes |= attempts.close(entry, end, outcome.error_type, outcome.spent, step, self._now)
        self._ledger.move(entry, outcome.state, end, outcome.error_type, self._now, **changes)
        return True

    @once
    def hand_back(
        self,
        job_id: str,
        attempt: int,
        token: str,
        *,
        reason: str,
        op: str,
        spent: Spent = NOTHING,
        preempted: bool = True,
    ) -> bool:
        entry = self._owned(job_id, attempt, token)
        if entry is None:
            return False
        job = entry.job
        changes = attempts.close(entry, "handed-back", reason, spent, attempts.kept_step(job), self._now)
        changes["preemptions"] = job.preemptions + preempted
        self._ledger.move(entry, attempts.waiting_state(job), "handed-back", reason, self._now, **changes)
        return True

    @once
    def lose(self, job_id: str, attempt: int, token: str, *, reason: str, max_crashes: int, op: str) -> bool:
        entry = self._owned(job_id, attempt, token)
        if entry is None:
            return False
        attempts.lose(self._ledger, entry, max_crashes, reason, self._now)
        return True

    @once
    def requeue(self, job_id: str, *, from_start: bool, reason: str, op: str) -> State:
        entry = self._entry(job_id)
        job = entry.job
        if job.state not in (State.FAILED, State.CANCELLED) or job.erased:
            raise rules.not_requeued(job.id, job.state, erased=job.erased)
        self._ledger.revive(entry)
        entry.parts = set(rules.parts_that_stay(entry.parts))
        changes: dict[str, Any] = {"error_type": "", "error": "", "ended_at": 0.0, "crashes": 0}
        changes["delivered"] = False
        if from_start:
            changes |= attempts.give_up_steps(entry)
        to = State.PENDING if from_start else attempts.waiting_state(job)
        self._ledger.move(entry, to, "requeued", reason, self._now, **changes)
        return to

    @once
    def erase(self, job_id: str, *, op: str) -> Job:
        entry = self._entry(job_id)
        before = entry.job
        if not before.ended:
            raise rules.not_erased(before.id, before.state)
        gone: dict[str, Any] = {"film": "", "manifest": "", "checkpoint": None, "checkpoint_before": None}
        entry.job = replace(before, request=rules.without_prompt(before.request), erased=True, **gone)
        self._ledger.note(entry, "erased", "", self._now)
        self._ledger.erasing[before.id] = self._now
        return before

    @once
    def cancel(self, job_id: str, *, reason: str, op: str) -> State:
        entry = self._entry(job_id)
        if not entry.job.ended:
            changes: dict[str, Any] = {
                "error_type": "JobCancelled",
                "error": rules.CANCELLED_TEXT % reason,
            }
            if entry.job.state is State.RUNNING:
                spent, step = attempts.told(entry), entry.job.step
                changes |= attempts.close(entry, "cancelled", reason, spent, step, self._now)
            self._ledger.move(entry, State.CANCELLED, "cancelled", reason, self._now, **changes)
        return entry.job.state

    @once
    def order(self, job_id: str, attempt: int, order: str, *, reason: str, op: str) -> bool:
        rules.check_order(order)
        entry = self._ledger.entries.get(job_id)
        return entry is not None and self._ordered(entry, attempt, order, reason)

    def _ordered(self, entry: Entry, attempt: int, order: str, reason: str) -> bool:
        if entry.job.state is not State.RUNNING or entry.job.attempt != attempt:
            return False
        entry.job = replace(entry.job, order=order)
        self._ledger.note(entry, "ordered", reason, self._now)
        return True

    # -- controllers -----------------------------------------------------------------------------------------

    @once
    def reap(self, *, max_crashes: int, op: str, lease_s: float, gap_s: float, limit: int = 100) -> list[str]:
        self._gap_s = gap_s
        self._witness()
        self._extend_leases(lease_s)
        lost = self._ledger.running.up_to(self._now, limit)
        for job_id in lost:
            entry = self._ledger.entries[job_id]
            attempts.lose(self._ledger, entry, max_crashes, "lease ran out", self._now)
        return lost

    def _extend_leases(self, lease_s: float) -> None:
        """The store was away: nobody could renew. ``reap.lua`` says more."""
        until = rules.micro((self._returned or 0.0) + lease_s)
        if until <= self._now:
            return
        for job_id in self._ledger.running.up_to(until, len(self._ledger.running)):
            entry = self._ledger.entries[job_id]
            if entry.run.extended < rules.EXTENDED_MAX and entry.job.lease_until < until:
                entry.run.extended += 1
                self._ledger.extend(entry, until, {})

    @once
    def assign(
        self,
        job_id: str,
        queue: str,
        *,
        reason: str,
        op: str,
        ticket: int | None = None,
        victim: tuple[str, int] | None = None,
    ) -> Ticket | None:
        entry = self._ledger.entries.get(job_id)
        if entry is None or overdue(entry.job, self._now):
            return None
        parked = entry.job.state is State.HELD and entry.job.build
        if not parked and entry.job.state not in (State.PENDING, State.QUEUED):
            return None
        if ticket is not None and entry.job.ticket != ticket:
            return None
        if victim is not None and not self._yields(*victim, reason):
            return None
        return attempts.assign(self._ledger, entry, queue, reason, self._now)

    def _yields(self, job_id: str, attempt: int, reason: str) -> bool:
        entry = self._ledger.entries.get(job_id)
        return entry is not None and not entry.job.order and self._ordered(entry, attempt, "yield", reason)

    @once
    def heal(
        self, queue: str, *, older_s: float, op: str, limit: int = 100, reason: str = rules.HEALED
    ) -> list[str]:
        healed = self._ledger.published[queue].up_to(rules.micro(self._now - older_s), limit)
        for job_id in healed:
            entry = self._ledger.entries[job_id]
            self._ledger.move(entry, attempts.waiting_state(entry.job), "healed", reason, self._now)
        return healed

    @once
    def wake(self, *, op: str, limit: int = 1000) -> list[str]:
        ledger = self._ledger
        for job_id in ledger.deadlines.up_to(self._now, limit):
            ledger.expire(ledger.entries[job_id], self._now)
        woken = [ledger.entries[job_id] for job_id in ledger.held.up_to(self._now, limit)]
        for entry in woken:
            ledger.move(entry, State.PENDING, "woken", "", self._now)
        return sorted({entry.job.queue for entry in woken})

    @once
    def reroute(self, job_id: str, *, gpu_class: str, queue: str, op: str) -> bool:
        entry = self._ledger.entries.get(job_id)
        if entry is None or entry.job.state not in (State.PENDING, State.HELD):
            return False
        before = entry.job.queue
        self._ledger.relocate(entry, gpu_class, queue)
        self._ledger.note(entry, "rerouted", f"{before} -> {queue}", self._now)
        return True
