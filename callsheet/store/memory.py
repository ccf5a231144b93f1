"""The store in one process: for tests, the simulator and eager mode.

Public, and held to the same contract as the one in Redis.
"""
# ruff: noqa: D102, ARG002 - the protocol documents the verbs; ``once`` reads ``op``

from __future__ import annotations

import copy
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Event, Job, NewJob, Outcome, Submitted, Ticket
from callsheet.records.states import State
from callsheet.store import attempts, rules
from callsheet.store.ledger import Entry, Ledger, overdue, owns
from callsheet.store.protocol import ClaimRefused, Lease, Page, Store
from callsheet.store.steps import Steps, atomic, once
from callsheet.store.ticks import Tick


class MemoryStore(Steps, Store):
    """See :class:`~callsheet.store.protocol.Store` for the verbs. Safe for threads.

    ``clock`` answers seconds since the epoch; ``retention_s``: how long a record outlives its end.
    """

    def __init__(self, clock: Callable[[], float] = time.time, retention_s: float = 86_400.0) -> None:
        super().__init__(clock)
        self._ledger = Ledger(retention_s)
        self._quotas: dict[str, int] = {}
        self._gpus: dict[str, tuple[Gpu, float]] = {}  # with the end of its heartbeat
        self._ticks: defaultdict[str, Tick] = defaultdict(Tick)

    def _begin_step(self) -> None:
        super()._begin_step()
        self._ledger.forget_old(self._now)

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
            return Submitted(
                job.id, created=True, tickets=tuple(self._release(job.queue)) if releasing else ()
            )
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
        free = self._quotas.get(queue, 0) - len(ledger.published[queue])
        tickets: list[Ticket] = []
        for _ in range(rules.RELEASE_MAX):
            front = ledger.backlogs[queue].first(1)
            if len(tickets) >= free or not front:
                break
            entry = ledger.entries[front[0]]
            if overdue(entry.job, self._now):
                ledger.expire(entry, self._now)
                continue
            tickets.append(attempts.publish(ledger, entry, self._now))
        return tickets

    @atomic
    def claim(self, ticket: Ticket, *, worker: str, token: str, lease_s: float) -> Lease | ClaimRefused:
        rules.check_op(token)
        entry = self._ledger.entries.get(ticket.job_id)
        reason = attempts.refusal(entry.job if entry else None, ticket, token)
        if entry is None or reason:
            return ClaimRefused(reason)
        if entry.job.state is State.QUEUED:
            if overdue(entry.job, self._now):
                self._ledger.expire(entry, self._now)
                return ClaimRefused("expired")
            attempts.claim(self._ledger, entry, token, lease_s, worker, self._now)
        job = entry.job
        return Lease(job=job, attempt=job.attempt, token=token, until=job.lease_until)

    @atomic
    def renew(
        self, job_id: str, attempt: int, token: str, *, lease_s: float, step: int, steps: int, phase: str
    ) -> str:
        entry = self._ledger.entries.get(job_id)
        if entry is None:
            return "fenced"
        progress = {"step": step, "steps": steps, "phase": phase}
        return attempts.renew(self._ledger, entry, (attempt, token), lease_s, progress, self._now)

    @once
    def finish(self, job_id: str, attempt: int, token: str, outcome: Outcome, *, op: str) -> bool:
        rules.check_outcome(outcome)
        entry = self._owned(job_id, attempt, token)
        if entry is None:
            return False
        changes = attempts.results(entry.job, outcome)
        self._ledger.move(entry, outcome.state, outcome.state.value, outcome.error_type, self._now, **changes)
        return True

    @once
    def hand_back(
        self, job_id: str, attempt: int, token: str, *, reason: str, op: str, gpu_s_wasted: float = 0.0
    ) -> bool:
        entry = self._owned(job_id, attempt, token)
        if entry is None:
            return False
        job = entry.job
        wasted = rules.micro(job.gpu_s_wasted + gpu_s_wasted)
        changes = {"preemptions": job.preemptions + 1, "gpu_s_wasted": wasted}
        self._ledger.move(entry, State.PENDING, "handed-back", reason, self._now, **changes)
        return True

    def _owned(self, job_id: str, attempt: int, token: str) -> Entry | None:
        entry = self._ledger.entries.get(job_id)
        return entry if entry and owns(entry.job, attempt, token) else None

    @once
    def cancel(self, job_id: str, *, reason: str, op: str) -> State:
        entry = self._entry(job_id)
        if not entry.job.ended:
            changes = {"error_type": "JobCancelled", "error": rules.CANCELLED_TEXT % reason}
            self._ledger.move(entry, State.CANCELLED, "cancelled", reason, self._now, **changes)
        return entry.job.state

    @once
    def order(self, job_id: str, attempt: int, order: str, *, reason: str, op: str) -> bool:
        rules.check_order(order)
        entry = self._ledger.entries.get(job_id)
        if entry is None or entry.job.state is not State.RUNNING or entry.job.attempt != attempt:
            return False
        entry.job = replace(entry.job, order=order)
        self._ledger.note(entry, "ordered", reason, self._now)
        return True

    # -- controllers -----------------------------------------------------------------------------------------

    @once
    def reap(self, *, max_crashes: int, op: str, limit: int = 100) -> list[str]:
        lost = self._ledger.running.up_to(self._now, limit)
        for job_id in lost:
            entry = self._ledger.entries[job_id]
            crashes = entry.job.crashes + 1
            to, kind, changes = State.PENDING, "lost", {}
            if crashes >= max_crashes:
                to, kind = State.FAILED, "failed"
                changes = {"error_type": "JobFailed", "error": rules.lost_text(entry.job, crashes)}
            self._ledger.move(entry, to, kind, "lease ran out", self._now, crashes=crashes, **changes)
        return lost

    @once
    def heal(self, queue: str, *, older_s: float, op: str, limit: int = 100) -> list[str]:
        healed = self._ledger.published[queue].up_to(rules.micro(self._now - older_s), limit)
        for job_id in healed:
            entry = self._ledger.entries[job_id]
            self._ledger.move(entry, State.PENDING, "healed", "its ticket was lost", self._now)
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

    @once
    def set_quotas(self, quotas: dict[str, int], *, op: str) -> None:
        self._quotas = dict(quotas)

    @atomic
    def begin_tick(self, controller: str, number: int, *, token: str, busy_s: float) -> bool:
        rules.check_op(token)
        return self._ticks[controller].begin(number, token, busy_s, self._now)

    @atomic
    def end_tick(self, controller: str, number: int, *, token: str, report: dict[str, Any]) -> None:
        self._ticks[controller].end(number, token, report, self._now)

    @atomic
    def last_report(self, controller: str) -> dict[str, Any]:
        return self._ticks[controller].fresh_report(self._now)

    # -- delivery --------------------------------------------------------------------------------------------

    @atomic
    def undelivered(self, limit: int = 100) -> list[str]:
        return list(islice(self._ledger.undelivered, limit))

    @atomic
    def lock_delivery(self, job_id: str, *, token: str, busy_s: float) -> bool:
        rules.check_op(token)
        entry = self._ledger.entries.get(job_id)
        if entry is None or job_id not in self._ledger.undelivered:
            return False
        if entry.deliver_token != token and entry.deliver_until > self._now:
            return False
        entry.deliver_token, entry.deliver_until = token, rules.micro(self._now + busy_s)
        return True

    @atomic
    def aliases(self, job_id: str) -> dict[str, dict[str, Any]]:
        entry = self._ledger.entries.get(job_id)
        return copy.deepcopy(entry.aliases) if entry else {}

    @atomic
    def delivered_parts(self, job_id: str) -> frozenset[str]:
        entry = self._ledger.entries.get(job_id)
        return frozenset(entry.parts) if entry else frozenset()

    @atomic
    def mark_part(self, job_id: str, part: str) -> None:
        entry = self._ledger.entries.get(job_id)
        if entry:
            entry.parts.add(part)

    @atomic
    def mark_delivered(self, job_id: str, *, names: Iterable[str], token: str) -> bool:
        entry = self._ledger.entries.get(job_id)
        if entry is None:
            return True
        if not entry.job.ended or not {job_id, *entry.aliases} <= set(names):
            return False
        self._ledger.undelivered.pop(job_id, None)
        entry.job = replace(entry.job, delivered=True)
        if entry.deliver_token == token:
            entry.deliver_token, entry.deliver_until = "", 0.0
        return True

    # -- looking ---------------------------------------------------------------------------------------------

    def _entry(self, name: str) -> Entry:
        entry = self._ledger.find(name)
        if entry is None:
            raise rules.not_found(name)
        return entry

    @atomic
    def resolve(self, name: str) -> str:
        return self._entry(name).job.id

    @atomic
    def get(self, job_id: str) -> Job:
        return self._entry(job_id).job

    @atomic
    def get_many(self, job_ids: Sequence[str]) -> list[Job | None]:
        entries = (self._ledger.entries.get(job_id) for job_id in job_ids)
        return [entry.job if entry else None for entry in entries]

    @atomic
    def list_jobs(
        self, *, state: State | None = None, tenant: str = "", limit: int = 50, cursor: str = ""
    ) -> Page:
        index = self._ledger.by_tenant[tenant] if tenant else self._ledger.all
        if state and not tenant:
            index = self._ledger.by_state[state]
        ids = index.below(rules.cursor_score(cursor))
        jobs = (self._ledger.entries[job_id].job for job_id in ids)
        found = list(islice((job for job in jobs if state in (None, job.state)), limit + 1))
        return Page(jobs=tuple(found[:limit]), cursor=rules.next_cursor(found, limit))

    @atomic
    def counts(self) -> dict[State, int]:
        return {state: len(self._ledger.by_state[state]) for state in State}

    @atomic
    def backlog(self) -> dict[str, int]:
        return {queue: len(ids) for queue, ids in sorted(self._ledger.backlogs.items()) if ids}

    @atomic
    def backlog_jobs(self, queue: str, limit: int = 100) -> list[str]:
        return self._ledger.backlogs[queue].first(limit)

    @atomic
    def published(self) -> dict[str, int]:
        return {queue: len(ids) for queue, ids in sorted(self._ledger.published.items()) if ids}

    @atomic
    def events(self, job_id: str) -> list[Event]:
        return list(self._entry(job_id).events)

    # -- GPUs ------------------------------------------------------------------------------------------------

    @atomic
    def beat_gpu(self, gpu: Gpu, *, ttl_s: float) -> None:
        self._gpus[gpu.name] = replace(gpu, seen_at=self._now), self._now + ttl_s

    @atomic
    def drop_gpu(self, name: str) -> None:
        self._gpus.pop(name, None)

    @atomic
    def gpus(self) -> list[Gpu]:
        self._gpus = {name: row for name, row in sorted(self._gpus.items()) if row[1] > self._now}
        return [gpu for gpu, _ in self._gpus.values()]

    # -- the server ------------------------------------------------------------------------------------------

    def now(self) -> float:
        return rules.micro(self._clock())

    def ping(self) -> dict[str, Any]:
        return {"version": "memory", "appendonly": "no", "maxmemory_policy": "noeviction", "used_memory": 0}

    def close(self) -> None:
        pass
