"""The record of a job: the truth about it. A broker message is only a ticket."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from callsheet.records.requests import VideoRequest
from callsheet.records.states import TERMINAL, State

FORMAT = 1  # version of record and ticket; an unknown one is left for who knows it
CHECKPOINT_FORMAT = 1  # version of checkpoints; a worker claims no job whose checkpoint it cannot read


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A resumable step in object storage. The record points at the newest two."""

    step: int  # finished denoising steps
    key: str  # of its object
    sha256: str  # of its bytes: an object that was damaged is told from a whole one
    size: int  # bytes
    build: str = ""  # who resumes it bit for bit; see ``workers.replay``
    format: int = CHECKPOINT_FORMAT


@dataclass(frozen=True, slots=True)
class Spent:
    """GPU-seconds of one attempt, by what they were good for."""

    useful: float = 0.0  # steps that are kept: in the film or in a checkpoint
    wasted: float = 0.0  # lost steps, and restoring from a checkpoint
    loading: float = 0.0  # weights


NOTHING = Spent()


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt that has ended. Times are store time, seconds since the epoch."""

    number: int
    worker: str
    claimed_at: float
    ended_at: float
    end: str  # succeeded, failed, handed-back, lost, cancelled
    reason: str
    from_step: int  # finished steps that it began with
    to_step: int  # finished steps that are kept
    spent: Spent


@dataclass(frozen=True, slots=True)
class NewJob:
    """What ``Store.submit`` stores."""

    id: str
    request: VideoRequest
    body_hash: str  # of everything that the idempotency key protects
    need_gib: float  # GPU memory it needs
    gpu_class: str  # smallest class that fits (placement)
    queue: str  # tier, class and lane: free.a100
    work_s: float = 0.0  # estimated seconds on the reference GPU
    charge_s: float = 0.0  # how far it moves its tenant's virtual time; see ``routing/fair.py``
    delay_s: float = 0.0  # how far behind its start tag it stands in its backlog
    #: Links, chain, chord; empty = none. Not shown: a host's URLs in there hold its passwords.
    canvas: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the store holds it. Times are store time, seconds since the epoch; 0 = not yet."""

    id: str
    state: State
    request: VideoRequest
    need_gib: float
    gpu_class: str
    queue: str  # its backlog; its ticket may be in another one, see ``home``
    format: int = FORMAT
    work_s: float = 0.0  # estimated seconds on the reference GPU
    fair_tag: float = 0.0  # virtual time at which its tenant's turn comes; see ``routing/fair.py``
    start_tag: float = 0.0  # its place in the backlog: lower ones come first
    ticket: int = 0  # number of the newest ticket; rises at release
    attempt: int = 0  # number of the newest attempt; rises at claim
    token: str = ""  # fence of the newest attempt
    worker: str = ""  # who runs (or last ran) it
    home: str = ""  # queue that its ticket was sent to: of another class, or direct; "" = its own queue
    lease_until: float = 0.0
    stepped_at: float = 0.0  # when the running attempt last told of another step or phase
    step_s: float = 0.0  # seconds of one step of the running attempt, as its worker measured; 0 = not yet
    step: int = 0  # finished denoising steps that are kept, or that the running attempt has
    steps: int = 0  # of how many
    phase: str = ""  # load, encode, denoise, decode, store: what the attempt does now
    order: str = ""  # "" or "yield": what the attempt shall do at its next step
    from_step: int = 0  # where the newest attempt began
    checkpoint: Checkpoint | None = None  # the newest
    checkpoint_before: Checkpoint | None = None  # the one before, should the newest be damaged
    build: str = ""  # it waits for a worker of this build (reproducible="strict")
    exact: bool = True  # False: resumed on another build, so close to the undisturbed film, not identical
    restarts: int = 0  # times that kept steps were given up; the events say why
    erased: bool = False  # prompt and film were erased on request
    created_at: float = 0.0
    queued_at: float = 0.0  # newest release
    started_at: float = 0.0  # first claim
    claimed_at: float = 0.0  # newest claim
    ended_at: float = 0.0
    crashes: int = 0  # attempts lost with their worker
    preemptions: int = 0  # attempts that gave their GPU to another job
    gpu_s_useful: float = 0.0  # GPU-seconds whose steps are kept: see Spent
    gpu_s_wasted: float = 0.0  # GPU-seconds that had to be done again
    gpu_s_loading: float = 0.0  # GPU-seconds spent loading weights
    film: str = ""  # URL of the film
    manifest: str = ""  # URL of the JSON with everything needed to make it again
    frames_sha256: str = ""  # hash of the raw frames
    error_type: str = ""  # name of a class in callsheet.errors
    error: str = ""  # what happened, what it means, what to do next
    canvas: dict[str, Any] = field(default_factory=dict, repr=False)  # see NewJob
    delivered: bool = False  # its outcome reached Celery's result backend, links and chord

    @property
    def tier(self) -> str:
        """Service class of the request."""
        return self.request.tier

    @property
    def strict(self) -> bool:
        """Whether it resumes only where the film comes out bit for bit."""
        return self.request.reproducible == "strict"

    @property
    def ticket_id(self) -> str:
        """Celery task id of its newest ticket."""
        return f"{self.id}.{self.ticket}"

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen by itself."""
        return self.state in TERMINAL

    @property
    def progress(self) -> float:
        """Share of the denoising done, 0 .. 1; exactly 1 only when the film is stored."""
        if self.state is State.SUCCEEDED:
            return 1.0
        return min(self.step / self.steps, 0.99) if self.steps else 0.0

    @property
    def wait_s(self) -> float:
        """Seconds from submit to the first claim; 0 while it has not started."""
        return max(self.started_at - self.created_at, 0.0) if self.started_at else 0.0

    @property
    def run_s(self) -> float:
        """Seconds from the newest claim to the end; 0 while it has not ended."""
        return max(self.ended_at - self.claimed_at, 0.0) if self.ended_at and self.claimed_at else 0.0


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a broker message says: run this job, if this ticket is still the current one."""

    job_id: str
    number: int
    queue: str
    format: int = FORMAT

    @property
    def id(self) -> str:
        """The Celery task id: ``<job>.<n>``."""
        return f"{self.job_id}.{self.number}"


@dataclass(frozen=True, slots=True)
class Submitted:
    """Answer of ``Store.submit``."""

    job_id: str  # the new job, or the first one under the same idempotency key
    created: bool  # False: the key was known
    urgent: bool = False  # the controllers shall look at once, instead of at their next tick
    tickets: tuple[Ticket, ...] = ()  # to be published, when submit was asked to release; not only this job's
    replicated: bool | None = None  # whether a replica of the store has it; None: no replica there


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended; what ``Store.finish`` records."""

    state: State  # SUCCEEDED or FAILED
    film: str = ""
    manifest: str = ""
    frames_sha256: str = ""
    error_type: str = ""
    error: str = ""
    step: int = 0
    spent: Spent = NOTHING


@dataclass(frozen=True, slots=True)
class Event:
    """One transition in a job's history."""

    at: float  # store time, seconds since the epoch
    kind: str  # submitted, released, claimed, handed-back, lost, healed, cancelled, succeeded, failed ...
    attempt: int
    worker: str
    reason: str
