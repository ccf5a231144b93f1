"""How attempts begin, go on and end in memory: twin of ``claim.lua``, ``renew.lua`` and ``finish.lua``."""

from __future__ import annotations

from typing import Any

from callsheet.records.jobs import FORMAT, Job, Outcome, Ticket
from callsheet.records.states import State
from callsheet.store import rules
from callsheet.store.ledger import Entry, Ledger

_REASONS = {State.RUNNING: "held-by-other", State.EXPIRED: "expired"}


def refusal(job: Job | None, ticket: Ticket, token: str) -> str:
    """Why the ticket gives no right to work; "" when it does, or when this token has that right already."""
    if ticket.format > FORMAT or (job and job.format > FORMAT):
        return "unknown-format"
    if job is None:
        return "unknown-job"
    if job.ticket != ticket.number:
        return "stale-ticket"
    if job.state is State.QUEUED or (job.state is State.RUNNING and job.token == token):
        return ""
    return _REASONS.get(job.state, "not-queued")


def publish(ledger: Ledger, entry: Entry, now: float) -> Ticket:
    """PENDING -> QUEUED under a new ticket."""
    number = entry.job.ticket + 1
    ledger.move(entry, State.QUEUED, "released", "", now, ticket=number, queued_at=now)
    return Ticket(job_id=entry.job.id, number=number, queue=entry.job.queue, format=entry.job.format)


def claim(ledger: Ledger, entry: Entry, token: str, lease_s: float, worker: str, now: float) -> None:
    """QUEUED -> RUNNING as the next attempt."""
    fence = {"attempt": entry.job.attempt + 1, "token": token, "worker": worker}
    _run(ledger, entry, "claimed", "", lease_s, now, **fence)


def renew(
    ledger: Ledger, entry: Entry, fence: tuple[int, str], lease_s: float, progress: dict[str, Any], now: float
) -> str:
    """The order for the attempt (number, token); ``renew.lua`` says why and when it adopts."""
    job = entry.job
    if (job.attempt, job.token) == fence:
        if job.state is State.RUNNING:
            ledger.extend(entry, rules.micro(now + lease_s), progress)
            return job.order
        return "cancel" if job.state is State.CANCELLED else "fenced"
    if fence[0] <= job.attempt or job.state not in (State.PENDING, State.QUEUED):
        return "fenced"
    if job.state is State.PENDING:
        ledger.move(entry, State.QUEUED, "released", "adopted", now, queued_at=now)
    owner = {"attempt": fence[0], "token": fence[1], "worker": ""}
    _run(ledger, entry, "adopted", "its claim was lost", lease_s, now, **owner, **progress)
    return ""


def results(job: Job, outcome: Outcome) -> dict[str, Any]:
    """What ``finish`` writes: GPU-seconds add up over attempts, the rest is as the outcome says."""
    changes: dict[str, Any] = {"step": outcome.step or job.step}
    for name in ("gpu_s_useful", "gpu_s_wasted", "gpu_s_loading"):
        changes[name] = rules.micro(getattr(job, name) + getattr(outcome, name))
    for name in ("film", "manifest", "frames_sha256", "error_type", "error"):
        changes[name] = getattr(outcome, name) or getattr(job, name)
    return changes


def _run(
    ledger: Ledger, entry: Entry, kind: str, reason: str, lease_s: float, now: float, **changes: Any
) -> None:
    changes |= {"claimed_at": now, "started_at": entry.job.started_at or now, "order": ""}
    changes["lease_until"] = rules.micro(now + lease_s)
    ledger.move(entry, State.RUNNING, kind, reason, now, **changes)
