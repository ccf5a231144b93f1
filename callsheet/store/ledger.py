"""The books of the in-memory store: records, indexes, and the one way from state to state (``move``).

Plain and not thread-safe: :class:`callsheet.store.memory.MemoryStore` locks around it and hands in the time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from callsheet.records.jobs import AttemptRecord, Event, Job, NewJob
from callsheet.records.states import TERMINAL, State, can_move
from callsheet.store import rules
from callsheet.store.sorted_ids import SortedIds

_MICRO = 0.000001


@dataclass(slots=True)
class Run:
    """What the running attempt told."""

    renewed_at: float = 0.0
    useful: float = 0.0  # GPU-seconds that its newest checkpoint keeps
    loading: float = 0.0  # GPU-seconds
    extended: int = 0  # leases that it got because the store was away


@dataclass(slots=True)
class Entry:
    """One job with what the store keeps beside its record."""

    job: Job
    body_hash: str
    events: list[Event] = field(default_factory=list)
    aliases: dict[str, dict[str, Any]] = field(default_factory=dict)  # other name -> its canvas
    parts: set[str] = field(default_factory=set)  # parts of the delivery that are done
    deliver_token: str = ""
    deliver_until: float = 0.0
    rows: dict[int, AttemptRecord] = field(default_factory=dict)  # attempts that have ended
    run: Run = field(default_factory=lambda: Run())  # of the running attempt

    @property
    def idem(self) -> tuple[str, str]:
        """Tenant and idempotency key."""
        return self.job.request.tenant, self.job.request.idempotency_key


class Ledger:
    """Records and indexes; see ``keys.py`` for what each index holds."""

    def __init__(self, retention_s: float) -> None:
        self.retention_s = retention_s
        self.entries: dict[str, Entry] = {}
        self.names: dict[str, str] = {}  # alias -> job id
        self.idem: dict[tuple[str, str], str] = {}
        self.backlogs: defaultdict[str, SortedIds] = defaultdict(SortedIds)
        self.published: defaultdict[str, SortedIds] = defaultdict(SortedIds)
        self.held = SortedIds()
        self.running = SortedIds()
        self.deadlines = SortedIds()
        self.ended = SortedIds()
        self.undelivered: dict[str, None] = {}  # an ordered set
        self.erasing: dict[str, float] = {}
        self.crashes, self.gpu_s = 0, 0.0  # seen in this fleet
        self.leads: defaultdict[str, float] = defaultdict(float)  # tier -> virtual time ahead of the clock
        self.turns: dict[tuple[str, str], float] = {}  # (tier, tenant) -> virtual time of its next turn
        self.offered: defaultdict[str, float] = defaultdict(float)  # queue -> work ever submitted, seconds
        self.works: defaultdict[str, float] = defaultdict(float)  # queue -> work in its backlog, seconds
        self.all = SortedIds()
        self.by_state: defaultdict[State, SortedIds] = defaultdict(SortedIds)
        self.by_tenant: defaultdict[str, SortedIds] = defaultdict(SortedIds)

    def find(self, name: str) -> Entry | None:
        """The entry behind an id or alias."""
        return self.entries.get(name) or self.entries.get(self.names.get(name, ""))

    def open(self, new: NewJob, now: float) -> Entry:
        """Record a new job, strictly later than any before it. Answers its entry."""
        created_at = rules.micro(max(now, self.all.top + _MICRO))
        state = State.HELD if new.request.not_before > now else State.PENDING
        job = Job(
            id=new.id,
            state=state,
            request=new.request,
            need_gib=new.need_gib,
            gpu_class=new.gpu_class,
            queue=new.queue,
            steps=new.request.steps,
            created_at=created_at,
            canvas=new.canvas,
            work_s=new.work_s,
            fair_tag=self._turn(new, created_at),
        )
        job = replace(job, start_tag=rules.micro(job.fair_tag + new.delay_s))
        entry = Entry(job=job, body_hash=new.body_hash)
        self.offered[job.queue] += job.work_s
        self.entries[job.id] = entry
        if new.request.idempotency_key:
            self.idem[entry.idem] = job.id
        if new.request.deadline > 0:
            self.deadlines.add(job.id, new.request.deadline)
        self.all.add(job.id, created_at)
        self.by_tenant[new.request.tenant].add(job.id, created_at)
        self._enter(entry)
        self.note(entry, "submitted", "", now)
        return entry

    def _turn(self, new: NewJob, created_at: float) -> float:
        """Virtual time at which the tenant's turn comes for this job; it moves on by the job's charge."""
        tenant = (new.request.tier, new.request.tenant)
        turn = max(rules.micro(created_at + self.leads[tenant[0]]), self.turns.get(tenant, 0.0))
        self.turns[tenant] = rules.micro(turn + new.charge_s)
        return turn

    def take_turn(self, job: Job, now: float) -> None:
        """The job leaves the backlog: virtual time is at least at its turn, and never goes back."""
        ahead = job.fair_tag - max(now, job.created_at)  # a clock that stepped back is behind created_at
        self.leads[job.tier] = max(self.leads[job.tier], rules.micro(ahead))

    def move(self, entry: Entry, to: State, kind: str, reason: str, now: float, **changes: Any) -> None:
        """The only way from one state to another. Raises AssertionError for one that the table lacks."""
        before = entry.job.state
        assert can_move(before, to), f"no transition {before} -> {to} of job {entry.job.id}"
        self._leave(entry)
        if before is State.RUNNING:
            changes |= {"phase": "", "order": "", "lease_until": 0.0}
        elif before is State.QUEUED and to is not State.RUNNING:
            changes["home"] = ""
        if to in TERMINAL:
            changes["ended_at"] = now
        entry.job = replace(entry.job, state=to, **changes)
        self._enter(entry)
        self.note(entry, kind, reason, now)
        if to is State.RUNNING or to in TERMINAL:
            self.deadlines.discard(entry.job.id)
        if to in TERMINAL:
            self.undelivered[entry.job.id] = None
            self.ended.add(entry.job.id, now)

    def revive(self, entry: Entry) -> None:
        """An ended job is to live again: it is kept as long as it is active, and not delivered."""
        self.ended.discard(entry.job.id)
        self.undelivered.pop(entry.job.id, None)
        entry.job = replace(entry.job, request=replace(entry.job.request, deadline=0.0))
        entry.deliver_token, entry.deliver_until = "", 0.0

    def unlist(self, entry: Entry) -> None:
        """Its ticket goes round among workers that cannot read it: it takes no place of its queue's quota."""
        self._leave(entry)
        entry.job = replace(entry.job, home=f"{rules.PASSED}{entry.job.queue}")
        self._enter(entry)

    def relocate(self, entry: Entry, gpu_class: str, queue: str) -> None:
        """Into another backlog, at the same place in time."""
        self._leave(entry)
        entry.job = replace(entry.job, gpu_class=gpu_class, queue=queue)
        self._enter(entry)

    def hasten(self, entry: Entry) -> None:
        """Its age alone is its place in the backlog from here on."""
        self._leave(entry)
        created_at = entry.job.created_at
        entry.job = replace(entry.job, fair_tag=created_at, start_tag=created_at)
        self._enter(entry)

    def extend(self, entry: Entry, lease_until: float, progress: dict[str, Any]) -> None:
        """A running attempt goes on."""
        entry.job = replace(entry.job, lease_until=lease_until, **progress)
        self.running.add(entry.job.id, lease_until)

    def expire(self, entry: Entry, now: float) -> None:
        """Its deadline passed before it started."""
        text = rules.EXPIRED_TEXT
        self.move(
            entry, State.EXPIRED, "expired", "deadline passed", now, error_type="JobExpired", error=text
        )

    def note(self, entry: Entry, kind: str, reason: str, now: float) -> None:
        """Append to the job's history; a full one loses the oldest behind its first ones."""
        job = entry.job
        entry.events.append(Event(at=now, kind=kind, attempt=job.attempt, worker=job.worker, reason=reason))
        if len(entry.events) > rules.EVENTS_MAX:
            del entry.events[rules.EVENTS_FIRST]

    def forget_old(self, now: float) -> None:
        """Drop what is past retention, with everything that belongs to it."""
        for job_id in self.ended.up_to(now - self.retention_s, len(self.ended)):
            self._forget(self.entries.pop(job_id))

    def _forget(self, entry: Entry) -> None:
        job = entry.job
        self.idem.pop(entry.idem, None)
        for name in entry.aliases:
            self.names.pop(name, None)
        self.undelivered.pop(job.id, None)
        for index in (self.all, self.by_state[job.state], self.by_tenant[job.request.tenant], self.ended):
            index.discard(job.id)

    def _place(self, entry: Entry) -> Iterator[tuple[SortedIds, float]]:
        """Sorted set and score where a job of an active state waits."""
        job = entry.job
        if job.state is State.PENDING:
            yield self.backlogs[job.queue], job.start_tag
        elif job.state is State.HELD:
            yield self.held, math.inf if job.build else job.request.not_before
        elif job.state is State.QUEUED:
            yield self.published[job.home or job.queue], job.queued_at
        elif job.state is State.RUNNING:
            yield self.running, job.lease_until

    def _leave(self, entry: Entry) -> None:
        for place, _ in self._place(entry):
            place.discard(entry.job.id)
        if entry.job.state is State.PENDING:
            self.works[entry.job.queue] -= entry.job.work_s
            if not self.backlogs[entry.job.queue]:
                del self.works[entry.job.queue]  # whatever was summed up wrong by rounding ends here
        self.by_state[entry.job.state].discard(entry.job.id)

    def _enter(self, entry: Entry) -> None:
        for place, score in self._place(entry):
            place.add(entry.job.id, score)
        if entry.job.state is State.PENDING:
            self.works[entry.job.queue] += entry.job.work_s
        self.by_state[entry.job.state].add(entry.job.id, entry.job.created_at)


def overdue(job: Job, now: float) -> bool:
    """Whether it should have started by now."""
    return 0 < job.request.deadline <= now and not job.started_at


def owns(job: Job, attempt: int, token: str) -> bool:
    """Whether this attempt owns the job."""
    return job.state is State.RUNNING and job.attempt == attempt and job.token == token
