"""The record of a job: the truth about it. A broker message is only a ticket."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from callsheet.records.requests import VideoRequest
from callsheet.records.states import TERMINAL, State

FORMAT = 1  # version of record and ticket; an unknown one is left for who knows it


@dataclass(frozen=True, slots=True)
class NewJob:
    """What ``Store.submit`` stores."""

    id: str
    request: VideoRequest
    body_hash: str  # of everything that the idempotency key protects
    need_gib: float  # GPU memory it needs
    gpu_class: str  # smallest class that fits (placement)
    queue: str  # tier, class and lane: free.a100
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
    queue: str
    format: int = FORMAT
    ticket: int = 0  # number of the newest ticket; rises at release
    attempt: int = 0  # number of the newest attempt; rises at claim
    token: str = ""  # fence of the newest attempt
    worker: str = ""  # who runs (or last ran) it
    lease_until: float = 0.0
    step: int = 0  # finished denoising steps of the newest attempt
    steps: int = 0  # of how many
    phase: str = ""  # load, encode, denoise, decode, store: what the attempt does now
    order: str = ""  # "", "cancel" or "yield": what the attempt shall do at its next step
    created_at: float = 0.0
    queued_at: float = 0.0  # newest release
    started_at: float = 0.0  # first claim
    claimed_at: float = 0.0  # newest claim
    ended_at: float = 0.0
    crashes: int = 0  # attempts lost with their worker
    preemptions: int = 0  # attempts handed back
    gpu_s_useful: float = 0.0  # GPU-seconds whose steps are in the film
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
    tickets: tuple[Ticket, ...] = ()  # to be published, when submit was asked to release; not only this job's


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
    gpu_s_useful: float = 0.0
    gpu_s_wasted: float = 0.0
    gpu_s_loading: float = 0.0


@dataclass(frozen=True, slots=True)
class Event:
    """One transition in a job's history."""

    at: float  # store time, seconds since the epoch
    kind: str  # submitted, released, claimed, handed-back, lost, healed, cancelled, succeeded, failed ...
    attempt: int
    worker: str
    reason: str
