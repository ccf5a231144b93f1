"""What waits, in sums and heads: what the policy sees of a backlog, never every job."""

from __future__ import annotations

from dataclasses import dataclass

DIRECT = "direct."  # begins the name of a queue that one worker alone serves; no tier is called so


@dataclass(frozen=True, slots=True)
class Head:
    """A job that waits near the front of its backlog."""

    job_id: str
    key: float  # its place: jobs with lower ones come first
    work_s: float  # estimated seconds on the reference GPU
    created_at: float  # store time, seconds since the epoch
    ticket: int = 0  # number of its last ticket


@dataclass(frozen=True, slots=True)
class Waiting:
    """One backlog. Jobs whose ticket is out, but in no worker's direct queue, count as waiting too."""

    queue: str  # tier, class that its jobs need at least, lane
    jobs: int
    work_s: float  # of all its jobs, estimated seconds on the reference GPU
    offered_s: float  # of all jobs that were ever submitted to it
    heads: tuple[Head, ...]  # in order, as many as were asked for


@dataclass(frozen=True, slots=True)
class Before:
    """What of one backlog stands before a place."""

    jobs: int
    work_s: float  # estimated seconds on the reference GPU


@dataclass(frozen=True, slots=True)
class Turn:
    """Virtual times, seconds; see ``routing/fair.py``."""

    now: float  # of the tier
    next: float  # at which a tenant's next job would stand

    @property
    def ahead_s(self) -> float:
        """How far the tenant is beyond its turns; 0 within them."""
        return max(self.next - self.now, 0.0)


@dataclass(frozen=True, slots=True)
class Desired:
    """What one worker is to serve, as the last rebalance left it."""

    queues: tuple[str, ...]  # in the order in which it looks into them, after its direct queue
    keep: tuple[str, ...] = ()  # lanes whose weights it shall have; what goes first stands last
    load: str = ""  # a lane whose weights it loads as soon as it has nothing to do; "" = none
    why: str = ""  # in words
    at: float = 0.0  # store time since when it is to load these weights
