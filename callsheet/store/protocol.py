"""The store's verbs: one for each atomic step in the life of a job.

Rules that hold for every verb, in both stores:

* times are the store's own clock (Redis TIME), seconds since the epoch: callers' clocks never matter;
* a mutating verb carries ``op``, a token that its caller draws once: a repeat with the same ``op`` changes
  nothing and
  gets the first answer (redis-py sends a script again when its reply was lost). ``renew`` needs none: it is
  absolute;
* a *fenced* verb carries (attempt, token): it answers ``False`` (or an order "fenced") once a newer attempt
  owns the job
  or the job has ended, and then writes nothing;
* a state changes only as ``records.states.TRANSITIONS`` allows;
* every transition appends an event to the job's history.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from callsheet.records.jobs import (
    NOTHING,
    AttemptRecord,
    Checkpoint,
    Event,
    Job,
    NewJob,
    Outcome,
    Spent,
    Submitted,
    Ticket,
)
from callsheet.records.lanes import Waiting
from callsheet.records.states import State
from callsheet.store import rules
from callsheet.store.fleet import Fleet
from callsheet.store.turns import Turns


@dataclass(frozen=True, slots=True)
class Lease:
    """The expiring right to run one attempt; what ``claim`` answers when it succeeds."""

    job: Job  # as it is after the claim
    attempt: int
    token: str
    until: float  # store time
    mean_s_between_losses: float = 86_400.0  # GPU-seconds between two lost workers, as seen in this fleet


@dataclass(frozen=True, slots=True)
class ClaimRefused:
    """Why a ticket gives no right to work. The ticket is worthless then and is dropped."""

    #: unknown-job, unknown-format, stale-ticket, not-queued, held-by-other, expired, cordoned, other-build
    reason: str


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing, newest first."""

    jobs: tuple[Job, ...]
    cursor: str  # hand it back for the next page; "" = no more


class Store(Fleet, Turns, Protocol):
    """What every store can do."""

    # -- the life of a job
    # ---------------------------------------------------------------------------------------

    def submit(self, job: NewJob, *, op: str, alias: bool = False, release: bool = False) -> Submitted:
        """Record a job and put it into its backlog (HELD while ``request.not_before`` lies ahead). No
        ticket yet, unless ``release=True``: then a job that is new and PENDING has its queue released in the
        same step, as by :meth:`release`, and the tickets answered are to be published. ``urgent`` of the
        answer: the controllers are to look at once, since a job of a tier that preempts came; asked for once
        until :meth:`take_urgent`.

        One step does it all: with ``request.idempotency_key`` set and known for the tenant, nothing is
        stored and the first job's id is answered (raises IdempotencyConflict when its ``body_hash``
        differs; the key lives exactly as long as that job's record). With ``alias=True`` in that case
        ``job.id`` becomes another name of the first job, with ``job.canvas`` as its own links and chord:
        :meth:`resolve` finds it, and the outcome is delivered under it too (again marked undelivered if it
        had been delivered already). A ``job.id`` that is already recorded: a repeat with the same body hash
        answers (id, created=False), another body raises IdempotencyConflict.
        """
        ...

    def release(self, queue: str, *, op: str) -> list[Ticket]:
        """Move jobs from the front of one backlog to QUEUED while fewer tickets are out than the queue's
        quota.

        Each gets ticket + 1 and enters ``published:{queue}``. The caller publishes the tickets answered. A
        queue without a quota releases nothing: nobody is known to serve it. Jobs whose deadline has passed
        expire instead.
        """
        ...

    def claim(
        self, ticket: Ticket, *, worker: str, token: str, lease_s: float, build: str = ""
    ) -> Lease | ClaimRefused:
        """Begin an attempt: succeeds when the job is QUEUED and the ticket is its current one.

        attempt + 1, state RUNNING, fence (attempt, token), lease until now + ``lease_s``, entry in
        ``running``, out of ``published``. The token is its own op. A passed deadline expires the job
        (reason "expired"). A cordoned worker gets nothing ("cordoned": the job is PENDING again), nor does a
        worker of another ``build`` than the one that a strict job waits for ("other-build": HELD).
        """
        ...

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
        """Fenced. Extend the lease, record progress; answers the order: "", "cancel", "yield" or "fenced".

        Succeeds after the lease's end too, until the attempt was raised or reaped ("fenced" then). A job
        that still carries this attempt's token in PENDING or QUEUED after a fail-over forgot its claim is
        adopted again: RUNNING, at ``worker``. A cancelled job answers "cancel" to the attempt that ran it.
        ``loading_s``: GPU-seconds that the attempt spent loading so far; ``step_s``: seconds of one of its
        steps, as measured (0 = not yet).
        """
        ...

    def keep_checkpoint(
        self, job_id: str, attempt: int, token: str, checkpoint: Checkpoint, *, useful_s: float, op: str
    ) -> list[Checkpoint] | None:
        """Fenced. The record points at this checkpoint, and at the one before.

        ``useful_s``: GPU-seconds of this attempt that it keeps. Answers the checkpoints that no longer count
        (this one itself when a later step is kept already), whose objects may go; None: fenced.
        """
        ...

    def start_from(
        self, job_id: str, attempt: int, token: str, *, step: int, exact: bool, reason: str, op: str
    ) -> bool:
        """Fenced. Say where the attempt begins: at a kept step, or at 0, which gives up what was kept.

        ``exact=False``: on another build, so the film will be close and not identical. False: fenced.
        """
        ...

    def decline(self, job_id: str, attempt: int, token: str, *, reason: str, op: str) -> bool:
        """Fenced. The attempt cannot yield without losing work: the order is taken back. False: fenced."""
        ...

    def finish(self, job_id: str, attempt: int, token: str, outcome: Outcome, *, op: str) -> bool:
        """Fenced. RUNNING -> SUCCEEDED | FAILED, enters ``undelivered``. False: fenced, nothing written."""
        ...

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
        """Fenced.

        RUNNING -> PENDING at the job's original place in its backlog (HELD when it waits for its build);
        ``preempted`` counts. False: fenced.
        """
        ...

    def lose(self, job_id: str, attempt: int, token: str, *, reason: str, max_crashes: int, op: str) -> bool:
        """Fenced. What :meth:`reap` does, at once: the attempt's process is seen dead. False: fenced."""
        ...

    def requeue(self, job_id: str, *, from_start: bool, reason: str, op: str) -> State:
        """FAILED | CANCELLED -> PENDING at its original place; the old failure is forgotten, crashes are 0.

        From its newest checkpoint, or ``from_start``. Its outcome will be delivered anew; a chord that
        counted it keeps its count. A deadline no longer binds. Raises JobNotFound, Refused (other states,
        erased).
        """
        ...

    def erase(self, job_id: str, *, op: str) -> Job:
        """Prompt, film and checkpoints leave the record of an ended job; see :meth:`erasing`.

        Answers the record as it was. Raises JobNotFound, Refused (it has not ended).
        """
        ...

    def cancel(self, job_id: str, *, reason: str, op: str) -> State:
        """Any active state -> CANCELLED at once; enters ``undelivered``. Answers the state now (an ended
        job keeps its own).

        Raises JobNotFound.
        """
        ...

    def order(self, job_id: str, attempt: int, order: str, *, reason: str, op: str) -> bool:
        """Tell the running attempt to "yield" its GPU at its next step, with a checkpoint.

        False: that attempt does not run (any more).
        """
        ...

    # -- controllers
    # ---------------------------------------------------------------------------------------------

    def reap(self, *, max_crashes: int, op: str, lease_s: float, gap_s: float, limit: int = 100) -> list[str]:
        """RUNNING jobs whose lease ran out -> PENDING (HELD) at their original place, crashes + 1.

        At ``max_crashes`` -> FAILED with the evidence, into ``undelivered``. When the store had answered
        nobody for ``gap_s``, leases hold for ``lease_s`` after its first answer, at most twice in a row.
        Answers the ids.
        """
        ...

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
        """PENDING, QUEUED, or HELD for its build -> QUEUED under a new ticket, in a worker's direct queue.

        ``ticket``: number of its last ticket as the caller saw it; ``victim``: (id, attempt) of the job that
        runs there and is told to "yield" in the same step, so that nobody ever sees the one without the
        other. The caller publishes the ticket. None, and nothing has changed: it does not wait (any more),
        has had another ticket meanwhile, or its victim does not run that attempt or has an order already.
        """
        ...

    def heal(
        self, queue: str, *, older_s: float, op: str, limit: int = 100, reason: str = rules.HEALED
    ) -> list[str]:
        """QUEUED jobs of one queue whose ticket is older than ``older_s`` -> PENDING at their original place.

        The caller has just seen the Celery queue *empty*; that is what makes the tickets lost. Answers the
        ids.
        """
        ...

    def wake(self, *, op: str, limit: int = 1000) -> list[str]:
        """HELD jobs whose ``not_before`` has come -> PENDING; active jobs not started by their deadline ->
        EXPIRED.

        Answers the queues that received jobs.
        """
        ...

    def reroute(self, job_id: str, *, gpu_class: str, queue: str, op: str) -> bool:
        """PENDING or HELD job into another backlog, keeping its place in time.

        False: it is in neither state.
        """
        ...

    # -- delivery
    # ------------------------------------------------------------------------------------------------

    def undelivered(self, limit: int = 100) -> list[str]:
        """Ended jobs whose outcome is not yet in the result backend."""
        ...

    def lock_delivery(self, job_id: str, *, token: str, busy_s: float) -> bool:
        """Single flight per job.

        True when nobody else delivers it now (a dead deliverer blocks for ``busy_s``).
        """
        ...

    def aliases(self, job_id: str) -> dict[str, dict[str, Any]]:
        """Other names of this job, each with its canvas (see :meth:`submit`)."""
        ...

    def delivered_parts(self, job_id: str) -> frozenset[str]:
        """The parts of the delivery that are done: ``<name>:result``, ``<name>:chord``, ``<name>:links``."""
        ...

    def mark_part(self, job_id: str, part: str) -> None:
        """A part of the delivery is done."""
        ...

    def mark_delivered(self, job_id: str, *, names: Iterable[str], token: str) -> bool:
        """Clear it from ``undelivered`` when every alias is among ``names`` (the job id included).

        False: one came late.
        """
        ...

    # -- looking
    # -------------------------------------------------------------------------------------------------

    def resolve(self, name: str) -> str:
        """The job id behind a job id or alias. Raises JobNotFound."""
        ...

    def get(self, job_id: str) -> Job:
        """The record; an alias finds its job. Raises JobNotFound."""
        ...

    def get_many(self, job_ids: Sequence[str]) -> list[Job | None]:
        """Records in the given order; None for unknown ids (aliases are not resolved)."""
        ...

    def list_jobs(
        self, *, state: State | None = None, tenant: str = "", limit: int = 50, cursor: str = ""
    ) -> Page:
        """Newest first, by indexes; never scans the keyspace."""
        ...

    def counts(self) -> dict[State, int]:
        """Jobs per state."""
        ...

    def lanes(self, heads: int = 1) -> list[Waiting]:
        """Every backlog that a job was ever submitted to, or that has jobs that were moved into it, by name.

        Sums, and up to ``heads`` jobs of its front.
        Jobs with a ticket in a queue that several workers serve count as waiting, those in a direct queue do
        not.
        """
        ...

    def backlog(self) -> dict[str, int]:
        """Waiting jobs per queue name (only queues that have some)."""
        ...

    def backlog_jobs(self, queue: str, limit: int = 100) -> list[str]:
        """Ids at the front of one backlog, in order."""
        ...

    def published_jobs(self, queue: str, limit: int = 100) -> list[str]:
        """Ids of jobs whose ticket is in one queue, the oldest ticket first."""
        ...

    def published(self) -> dict[str, int]:
        """Tickets out per queue name (only queues that have some)."""
        ...

    def running(self) -> list[Job]:
        """Jobs that run, the lease that ends first coming first."""
        ...

    def parked(self) -> list[Job]:
        """Jobs that wait for a worker of their build."""
        ...

    def attempts(self, job_id: str) -> list[AttemptRecord]:
        """The attempts that have ended, oldest first. Raises JobNotFound."""
        ...

    def erasing(self) -> dict[str, float]:
        """Erased jobs whose objects are to go, with the store time of the erasure."""
        ...

    def erased(self, job_id: str) -> None:
        """Its objects are gone."""
        ...

    def events(self, job_id: str) -> list[Event]:
        """The job's history, oldest first. Raises JobNotFound."""
        ...

    # -- the server
    # ----------------------------------------------------------------------------------------------

    def now(self) -> float:
        """Store time, seconds since the epoch."""
        ...

    def ping(self) -> dict[str, Any]:
        """Facts for ``callsheet doctor``.

        Version, appendonly, maxmemory_policy, used_memory. Raises Unreachable.
        """
        ...

    def close(self) -> None:
        """Give connections back."""
        ...
