"""The life of a job, as one table; every store verb obeys it and nothing else changes a state.

::

                    ┌──────────── hand_back, reap ───────────┐
                    ▼                                        │
    submit ──► pending ──release──► queued ──claim──► running ──finish──► succeeded | failed
                 ▲ │                  │ │                │
        reroute, │ │ expire           │ │ expire         │
        heal ────┼─┼──────────────────┘ ▼                │
                 │ ├──────────────► expired              │
                 │ └──cancel──► cancelled ◄──────────────┘ cancel
                 │                │
                 └── requeue ◄────┴─ failed

A job waits ``held`` for its eta (then ``pending``), or, with ``reproducible="strict"``, between two attempts
for a worker that resumes it bit for bit (``running`` or ``queued`` -> ``held`` -> ``queued`` at that worker).

To the outside (HTTP) only ``queued``, ``in_progress``, ``completed`` and ``failed`` exist.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """The state of a job in the store."""

    PENDING = "pending"  # in the backlog, no ticket out
    HELD = "held"  # in the backlog, kept there until its eta, or until its worker is there
    QUEUED = "queued"  # a ticket is published
    RUNNING = "running"  # an attempt holds the lease
    SUCCEEDED = "succeeded"  # the film is stored
    FAILED = "failed"  # it ended with an error
    CANCELLED = "cancelled"  # somebody cancelled it
    EXPIRED = "expired"  # its deadline passed before it started


TERMINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED, State.EXPIRED})
ACTIVE = frozenset(State) - TERMINAL

TRANSITIONS: dict[State, frozenset[State]] = {
    State.PENDING: frozenset({State.QUEUED, State.HELD, State.CANCELLED, State.EXPIRED}),
    State.HELD: frozenset({State.PENDING, State.QUEUED, State.CANCELLED, State.EXPIRED}),
    State.QUEUED: frozenset({State.RUNNING, State.PENDING, State.HELD, State.CANCELLED, State.EXPIRED}),
    State.RUNNING: frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED, State.PENDING, State.HELD}),
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset({State.PENDING, State.HELD}),
    State.CANCELLED: frozenset({State.PENDING, State.HELD}),
    State.EXPIRED: frozenset(),
}

#: What HTTP clients see (the ``/v1/videos`` shape).
OUTSIDE = {
    State.PENDING: "queued",
    State.HELD: "queued",
    State.QUEUED: "queued",
    State.RUNNING: "in_progress",
    State.SUCCEEDED: "completed",
    State.FAILED: "failed",
    State.CANCELLED: "failed",
    State.EXPIRED: "failed",
}

#: The Celery state that ``AsyncResult.state`` shows; a preempted job reads PENDING again, never REVOKED.
CELERY = {
    State.PENDING: "PENDING",
    State.HELD: "PENDING",
    State.QUEUED: "PENDING",
    State.RUNNING: "STARTED",
    State.SUCCEEDED: "SUCCESS",
    State.FAILED: "FAILURE",
    State.CANCELLED: "REVOKED",
    State.EXPIRED: "FAILURE",
}


def can_move(before: State, after: State) -> bool:
    """Whether the table allows the transition."""
    return after in TRANSITIONS[before]
