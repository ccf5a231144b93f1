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

from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Event, Job, NewJob, Outcome, Submitted, Ticket
from callsheet.records.states import State


@dataclass(frozen=True, slots=True)
class Lease:
    """The expiring right to run one attempt; what ``claim`` answers when it succeeds."""

    job: Job  # as it is after the claim
    attempt: int
    token: str
    until: float  # store time


@dataclass(frozen=True, slots=True)
class ClaimRefused:
    """Why a ticket gives no right to work. The ticket is worthless then and is dropped."""

    reason: str  # unknown-job | unknown-format | stale-ticket | not-queued | held-by-other | expired


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing, newest first."""

    jobs: tuple[Job, ...]
    cursor: str  # hand it back for the next page; "" = no more


class Store(Protocol):
    """What every store can do."""

    # -- the life of a job
    # ---------------------------------------------------------------------------------------

    def submit(self, job: NewJob, *, op: str, alias: bool = False, release: bool = False) -> Submitted:
        """Record a job and put it into its backlog (HELD while ``request.not_before`` lies ahead). No
        ticket yet, unless ``release=True``: then a job that is new and PENDING has its queue released in the
        same step, as by :meth:`release`, and the tickets answered are to be published.

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

    def claim(self, ticket: Ticket, *, worker: str, token: str, lease_s: float) -> Lease | ClaimRefused:
        """Begin an attempt: succeeds when the job is QUEUED and the ticket is its current one.

        attempt + 1, state RUNNING, fence (attempt, token), lease until now + ``lease_s``, entry in
        ``running``, out of ``published``. The token is its own op. A passed deadline expires the job
        (reason "expired").
        """
        ...

    def renew(
        self, job_id: str, attempt: int, token: str, *, lease_s: float, step: int, steps: int, phase: str
    ) -> str:
        """Fenced. Extend the lease, record progress; answers the order: "", "cancel", "yield" or "fenced".

        Succeeds after the lease's end too, until the attempt was raised or reaped ("fenced" then). A job
        that still carries this attempt's token in PENDING or QUEUED after a fail-over forgot its claim is
        adopted again: RUNNING. A cancelled job answers "cancel" to the attempt that ran it.
        """
        ...

    def finish(self, job_id: str, attempt: int, token: str, outcome: Outcome, *, op: str) -> bool:
        """Fenced. RUNNING -> SUCCEEDED | FAILED, enters ``undelivered``. False: fenced, nothing written."""
        ...

    def hand_back(
        self, job_id: str, attempt: int, token: str, *, reason: str, op: str, gpu_s_wasted: float = 0.0
    ) -> bool:
        """Fenced.

        RUNNING -> PENDING at the job's original place in its backlog; preemptions + 1. False: fenced.
        """
        ...

    def cancel(self, job_id: str, *, reason: str, op: str) -> State:
        """Any active state -> CANCELLED at once; enters ``undelivered``. Answers the state now (an ended
        job keeps its own).

        Raises JobNotFound.
        """
        ...

    def order(self, job_id: str, attempt: int, order: str, *, reason: str, op: str) -> bool:
        """Tell the running attempt to "yield" at its next step.

        False: that attempt does not run (any more).
        """
        ...

    # -- controllers
    # ---------------------------------------------------------------------------------------------

    def reap(self, *, max_crashes: int, op: str, limit: int = 100) -> list[str]:
        """RUNNING jobs whose lease ran out -> PENDING at their original place, crashes + 1.

        At ``max_crashes`` -> FAILED with the evidence, into ``undelivered``. Answers the ids.
        """
        ...

    def heal(self, queue: str, *, older_s: float, op: str, limit: int = 100) -> list[str]:
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

    def set_quotas(self, quotas: dict[str, int], *, op: str) -> None:
        """Replace all quotas.

        How many tickets may be out per queue. Kept until the next call, also without a beat.
        """
        ...

    def begin_tick(self, controller: str, number: int, *, token: str, busy_s: float) -> bool:
        """Single flight: True when tick ``number`` is newer than any begun one and no other is under way.

        ``busy_s`` bounds how long a dead holder blocks. Two beats send the same numbers: one wins.
        """
        ...

    def end_tick(self, controller: str, number: int, *, token: str, report: dict[str, Any]) -> None:
        """Tick done; ``report`` (counts, reasons, duration_s) is kept for a minute."""
        ...

    def last_report(self, controller: str) -> dict[str, Any]:
        """The report of the controller's last tick; empty when none ended within the last minute."""
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

    def backlog(self) -> dict[str, int]:
        """Waiting jobs per queue name (only queues that have some)."""
        ...

    def backlog_jobs(self, queue: str, limit: int = 100) -> list[str]:
        """Ids at the front of one backlog, in order."""
        ...

    def published(self) -> dict[str, int]:
        """Tickets out per queue name (only queues that have some)."""
        ...

    def events(self, job_id: str) -> list[Event]:
        """The job's history, oldest first. Raises JobNotFound."""
        ...

    # -- GPUs
    # ----------------------------------------------------------------------------------------------------

    def beat_gpu(self, gpu: Gpu, *, ttl_s: float) -> None:
        """Register a GPU or renew its heartbeat (``seen_at`` is set by the store)."""
        ...

    def drop_gpu(self, name: str) -> None:
        """A worker left in order."""
        ...

    def gpus(self) -> list[Gpu]:
        """GPUs whose heartbeat is alive, by name."""
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
