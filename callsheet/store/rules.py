"""What both stores decide alike: limits, texts and the few pure rules that the protocol leaves open.

Where the protocol is silent, both stores hold that

* ``created_at`` is strictly later than that of any job before it; it is the start tag too, and a job that
  returns keeps its tag;
* a HELD job stands in no backlog; a deadline binds only until the first claim;
* ``cancel``, ``get`` and ``events`` take an alias, all other verbs a job id;
* a renewal adopts only an attempt above the record's while the job is PENDING or QUEUED (``renew.lua`` says
  why that is safe);
* GPU-seconds add up over attempts; a lost or cancelled attempt counts as far as its renewals and checkpoints
  told, the time after its last checkpoint as wasted;
* ``lock_delivery`` answers False for a job that has nothing to deliver, ``mark_delivered`` keeps the lock
  when it answers False, and ``mark_delivered`` of a job past its retention answers True;
* an error is no answer: a repeat of an ``op`` that raised is tried again.

The Lua scripts get the numbers and texts of this file in front of them (see ``scripts.py``), so that
none of them is written twice.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace

from callsheet import errors
from callsheet.records.jobs import Job, NewJob, Outcome
from callsheet.records.requests import PREEMPTING, VideoRequest
from callsheet.records.states import State

OP_TTL_S = 120.0  # how long the first answer to an ``op`` is kept for a repeat
EVENTS_MAX = 200  # events kept per job: its first ones and the newest
EVENTS_FIRST = 20  # of them, those that no later one pushes out
TICK_TTL_S = 86_400.0  # how long a controller's last tick number is remembered
REPORT_TTL_S = 180.0  # how long a tick's report is kept: some rounds run each minute
TRIM_MAX = 100  # index entries trimmed by one transition
EXTENDED_MAX = 2  # leases in a row that a job gets because the store was away
GUESSED_GPU_S = 86_400.0  # GPU-seconds between two losses of a worker, before any was seen
URGENT_TTL_S = 2.0  # how long a look that was asked for, and never came, keeps others from asking
TURNS_TTL_S = 86_400  # how long an idle tenant's place in virtual time is remembered
MEMORY_TTL_S = 900  # how long a controller remembers
PLANS_TTL_S = 600  # how long the plan of a tick is kept
PLANS_MAX = 120  # plans kept: those that were asked for between two ticks are plans too
RELEASE_MAX = 1000  # jobs that one release looks at, counting those that expire

EXPIRED_TEXT = (
    "The deadline passed before the job started, so nothing was rendered. "
    "Submit it again with a later deadline, or in a tier that waits less."
)
CANCELLED_TEXT = "The job was cancelled (%s), so there is no film. Submit it again to render it."
LOST_TEXT = (
    "Its worker %s was lost in attempt %s at step %s of %s (phase: %s); workers lost by this job: %s. It has "
    "failed so that it does not take down one worker after another. Read that worker's log, then requeue it: "
    "it goes on at its newest checkpoint, if there is one."
)

PASSED = "passed."  # before a queue's name: where tickets are listed that workers pass on, see claim.lua
CHORD_PART = ":chord"  # ends the name of a part of a delivery: <job's name>:chord
ORDERS = frozenset({"yield"})
HEALED = "its ticket was lost"
HASTENED = "waited %.0f s, most of what its tier promises: it goes before younger jobs now"
GPU_ACTIONS = frozenset({"cordoned", "draining"})
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,199}")


def micro(seconds: float) -> float:
    """Times and GPU-seconds are kept to the microsecond."""
    return round(seconds, 6)


def check_submit(job: NewJob, op: str) -> None:
    """Raises RequestError for an id that cannot be part of a key, ValueError for a missing op."""
    check_op(op)
    if not _ID.fullmatch(job.id):
        raise errors.RequestError(
            f"The job id {job.id!r} cannot be used; nothing was stored. An id has 1 to 200 letters, digits, "
            f"'_', '.', '@' or '-' and begins with a letter or digit. Leave it out to have one drawn."
        )


def is_id(name: str) -> bool:
    """Whether a job can have that id at all."""
    return _ID.fullmatch(name) is not None


def check_op(op: str) -> None:
    """An empty op would make every verb a repeat of the first one. Raises ValueError."""
    if not op:
        raise ValueError(
            "op is empty: draw a token (for example uuid4().hex) once per call and keep it for repeats"
        )


def check_order(order: str) -> None:
    """Raises ValueError for an order that no attempt understands."""
    if order not in ORDERS:
        raise ValueError(f"order {order!r} is none of {sorted(ORDERS)}")


def check_gpu_order(action: str) -> None:
    """Raises ValueError for a word that no worker understands."""
    if action not in GPU_ACTIONS:
        raise ValueError(f"action {action!r} is none of {sorted(GPU_ACTIONS)}")


def check_outcome(outcome: Outcome) -> None:
    """Raises ValueError for an outcome that does not end an attempt by itself."""
    if outcome.state not in (State.SUCCEEDED, State.FAILED):
        raise ValueError(f"an attempt ends succeeded or failed, not {outcome.state}")


def not_found(name: str) -> errors.JobNotFound:
    """The error for a name without a record."""
    return errors.JobNotFound(
        f"No job is recorded under {name!r}: it was never submitted here, or its record is past its "
        "retention. Check the id, and that you look at the store it was submitted to."
    )


def conflict(new: NewJob, first: str) -> errors.IdempotencyConflict:
    """The error for a known id or idempotency key with another body."""
    key = new.request.idempotency_key
    what = f"idempotency key {key!r}" if key else f"job id {new.id!r}"
    return errors.IdempotencyConflict(
        f"The {what} already belongs to job {first!r} with another request; nothing was stored. "
        "Send the very same request to get that job, or use a new key."
    )


def cursor_score(cursor: str) -> float:
    """The ``created_at`` that a page ended with; infinite for the first page. Raises RequestError."""
    if not cursor:
        return math.inf
    try:
        return float(cursor)
    except ValueError:
        raise errors.RequestError(
            f"The cursor {cursor!r} is none that a listing answered. Leave it empty to begin with the newest."
        ) from None


def next_cursor(jobs: list[Job], limit: int) -> str:
    """Cursor after ``limit`` of the jobs found; "" when there are no more than that."""
    return f"{jobs[limit - 1].created_at:.6f}" if len(jobs) > limit > 0 else ""


def lost_text(job: Job, crashes: int) -> str:
    """The evidence when a job fails because its workers were lost."""
    return LOST_TEXT % (job.worker or "?", job.attempt, job.step, job.steps, job.phase or "?", crashes)


def is_urgent(job: NewJob) -> bool:
    """Whether the controllers are to look at once: it may take a GPU from another job."""
    return job.request.tier in PREEMPTING


def parts_that_stay(parts: Iterable[str]) -> list[str]:
    """Parts of a delivery that a requeue does not undo: a chord counts each member once."""
    return sorted(part for part in parts if part.endswith(CHORD_PART))


def without_prompt(request: VideoRequest) -> VideoRequest:
    """What is left of a request when its job was erased."""
    return replace(request, prompt="", negative_prompt="")


def not_requeued(job_id: str, state: State, *, erased: bool) -> errors.Refused:
    """The error for a requeue of a job that is not to be made again."""
    if erased:
        return errors.Refused(
            f"Job {job_id} was erased, its prompt with it, so it cannot be made again. Submit it anew."
        )
    return errors.Refused(
        f"Job {job_id} is {state}: only failed and cancelled jobs are requeued; nothing was changed. "
        "Submit it anew to get another film."
    )


def not_erased(job_id: str, state: State) -> errors.Refused:
    """The error for erasing a job that goes on."""
    return errors.Refused(
        f"Job {job_id} is {state}: only ended jobs are erased; nothing was changed. Cancel it first."
    )
