"""The books of the in-memory store, to look into them and to deliver: what changes no state.

See :class:`~callsheet.store.protocol.Store` for the verbs.
"""
# ruff: noqa: D102, ARG002 - the protocol documents the verbs; ``once`` reads ``op``

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from callsheet.records.jobs import AttemptRecord, Event, Job
from callsheet.records.lanes import DIRECT, Before, Head, Turn, Waiting
from callsheet.records.states import State
from callsheet.store import rules
from callsheet.store.ledger import Entry, Ledger, owns
from callsheet.store.memory_fleet import MemoryFleet
from callsheet.store.protocol import Page
from callsheet.store.steps import atomic, once


class MemoryBooks(MemoryFleet):
    """Looking and delivering."""

    def __init__(self, clock: Callable[[], float] = time.time, retention_s: float = 86_400.0) -> None:
        super().__init__(clock)
        self._ledger = Ledger(retention_s)

    def _begin_step(self) -> None:
        super()._begin_step()
        self._ledger.forget_old(self._now)

    def _owned(self, job_id: str, attempt: int, token: str) -> Entry | None:
        entry = self._ledger.entries.get(job_id)
        return entry if entry and owns(entry.job, attempt, token) else None

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
    def lanes(self, heads: int = 1) -> list[Waiting]:
        ledger = self._ledger
        out: dict[str, list[Job]] = {}
        for place, ids in ledger.published.items():
            if not place.startswith(DIRECT):
                for job_id in ids.first(len(ids)):
                    job = ledger.entries[job_id].job
                    out.setdefault(job.queue, []).append(job)
        known = {*ledger.offered, *out, *(queue for queue, ids in ledger.backlogs.items() if len(ids))}
        return [waiting(queue, out.get(queue, []), ledger, heads) for queue in sorted(known)]

    @atomic
    def turn(self, tier: str, tenant: str) -> Turn:
        virtual = rules.micro(self._now + self._ledger.leads.get(tier, 0.0))
        return Turn(virtual, max(virtual, self._ledger.turns.get((tier, tenant), 0.0)))

    @atomic
    def before(self, tier: str, key: float) -> dict[str, Before]:
        found = {}
        for queue, ids in sorted(self._ledger.backlogs.items()):
            if queue.partition(".")[0] == tier and (jobs := ids.count(key)):
                work_s = self._ledger.works[queue] * jobs / len(ids)
                found[queue] = Before(jobs, rules.micro(work_s))
        return found

    @once
    def hasten(self, older_s: Mapping[str, float], *, op: str, limit: int = 1000) -> list[str]:
        moved = []
        since = rules.micro(self._now - min(older_s.values())) if older_s else 0.0
        for job_id in self._ledger.by_state[State.PENDING].up_to(since, limit):
            entry = self._ledger.entries[job_id]
            job = entry.job
            waited = self._now - job.created_at
            if waited >= older_s.get(job.tier, math.inf) and job.start_tag > job.created_at:
                self._ledger.hasten(entry)
                self._ledger.note(entry, "hastened", rules.HASTENED % waited, self._now)
                moved.append(job_id)
        return moved

    @atomic
    def keyed(self, tenant: str, key: str) -> str:
        return self._ledger.idem.get((tenant, key), "")

    @atomic
    def backlog(self) -> dict[str, int]:
        return {queue: len(ids) for queue, ids in sorted(self._ledger.backlogs.items()) if ids}

    @atomic
    def backlog_jobs(self, queue: str, limit: int = 100) -> list[str]:
        return self._ledger.backlogs[queue].first(limit)

    @atomic
    def published_jobs(self, queue: str, limit: int = 100) -> list[str]:
        return self._ledger.published[queue].first(limit)

    @atomic
    def published(self) -> dict[str, int]:
        return {queue: len(ids) for queue, ids in sorted(self._ledger.published.items()) if ids}

    @atomic
    def running(self) -> list[Job]:
        ids = self._ledger.running.first(len(self._ledger.running))
        return [self._ledger.entries[job_id].job for job_id in ids]

    @atomic
    def parked(self) -> list[Job]:
        held = (
            self._ledger.entries[job_id].job for job_id in self._ledger.held.first(len(self._ledger.held))
        )
        return [job for job in held if job.build]

    @atomic
    def attempts(self, job_id: str) -> list[AttemptRecord]:
        return [row for _, row in sorted(self._entry(job_id).rows.items())]

    @atomic
    def erasing(self) -> dict[str, float]:
        return dict(self._ledger.erasing)

    @atomic
    def erased(self, job_id: str) -> None:
        self._ledger.erasing.pop(job_id, None)

    @atomic
    def events(self, job_id: str) -> list[Event]:
        return list(self._entry(job_id).events)

    # -- the server ------------------------------------------------------------------------------------------

    def now(self) -> float:
        return rules.micro(self._clock())

    def ping(self) -> dict[str, Any]:
        return {"version": "memory", "appendonly": "no", "maxmemory_policy": "noeviction", "used_memory": 0}

    def close(self) -> None:
        pass


def waiting(queue: str, published: list[Job], ledger: Ledger, heads: int) -> Waiting:
    """One backlog as the policy sees it, with the jobs of it whose ticket is out."""
    pending = ledger.backlogs[queue]
    front = [ledger.entries[job_id].job for job_id in pending.first(heads)]
    if published:
        front = sorted([*published, *front], key=lambda job: (job.start_tag, job.id))[:heads]
    return Waiting(
        queue=queue,
        jobs=len(pending) + len(published),
        work_s=ledger.works.get(queue, 0.0) + sum(job.work_s for job in published),
        offered_s=ledger.offered.get(queue, 0.0),
        heads=tuple(Head(job.id, job.start_tag, job.work_s, job.created_at, job.ticket) for job in front),
    )
