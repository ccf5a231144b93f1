"""How attempts begin, go on and end in memory: twin of what the Lua scripts share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from callsheet.records.jobs import (
    CHECKPOINT_FORMAT,
    FORMAT,
    AttemptRecord,
    Checkpoint,
    Job,
    Outcome,
    Spent,
    Ticket,
)
from callsheet.records.states import State
from callsheet.store import rules
from callsheet.store.ledger import Entry, Ledger, Run

_REASONS = {State.RUNNING: "held-by-other", State.EXPIRED: "expired"}


@dataclass(frozen=True, slots=True)
class Owner:
    """Who renews."""

    fence: tuple[int, str]  # (attempt, token)
    worker: str
    lease_s: float
    loading_s: float  # GPU-seconds that the attempt spent loading so far


UNKNOWN = "unknown-format"


def refusal(job: Job | None, ticket: Ticket, token: str) -> str:
    """Why the ticket gives no right to work; "" when it does, or when this token has that right already.

    UNKNOWN only for a ticket that would begin an attempt: any other one is worthless, whatever its format.
    """
    if job is None:
        return "unknown-job"
    if job.ticket != ticket.number:
        return "stale-ticket"
    if job.state is State.RUNNING and job.token == token:
        return ""
    if job.state is not State.QUEUED:
        return _REASONS.get(job.state, "not-queued")
    kept = job.checkpoint.format if job.checkpoint else 0
    return UNKNOWN if max(ticket.format, job.format) > FORMAT or kept > CHECKPOINT_FORMAT else ""


def publish(ledger: Ledger, entry: Entry, queue: str, now: float) -> Ticket:
    """PENDING -> QUEUED under a new ticket, in its own queue or another one."""
    number, home = entry.job.ticket + 1, "" if queue == entry.job.queue else queue
    ledger.move(entry, State.QUEUED, "released", home, now, ticket=number, queued_at=now, home=home)
    ledger.take_turn(entry.job, now)
    return Ticket(job_id=entry.job.id, number=number, queue=queue, format=entry.job.format)


def assign(ledger: Ledger, entry: Entry, queue: str, reason: str, now: float) -> Ticket:
    """A waiting job -> QUEUED under a new ticket in a worker's direct queue."""
    if entry.job.state is State.QUEUED:
        ledger.move(entry, State.PENDING, "recalled", reason, now)
    number = entry.job.ticket + 1
    ledger.move(entry, State.QUEUED, "assigned", reason, now, ticket=number, queued_at=now, home=queue)
    ledger.take_turn(entry.job, now)
    return Ticket(entry.job.id, number, queue, entry.job.format)


def claim(ledger: Ledger, entry: Entry, token: str, lease_s: float, worker: str, now: float) -> None:
    """QUEUED -> RUNNING as the next attempt."""
    fence = {"attempt": entry.job.attempt + 1, "token": token, "worker": worker}
    _run(ledger, entry, "claimed", "", lease_s, now, **fence)


def renew(ledger: Ledger, entry: Entry, owner: Owner, progress: dict[str, Any], now: float) -> str:
    """The order for the attempt (number, token); ``renew.lua`` says why and when it adopts."""
    job = entry.job
    if (job.attempt, job.token) == owner.fence:
        if job.state is State.RUNNING:
            ledger.gpu_s += now - entry.run.renewed_at
            entry.run.renewed_at, entry.run.loading, entry.run.extended = now, owner.loading_s, 0
            if (job.step, job.phase) != (progress["step"], progress["phase"]):
                progress = progress | {"stepped_at": now}
            ledger.extend(entry, rules.micro(now + owner.lease_s), progress)
            return job.order
        return "cancel" if job.state is State.CANCELLED else "fenced"
    if owner.fence[0] <= job.attempt or job.state not in (State.PENDING, State.QUEUED):
        return "fenced"
    if job.state is State.PENDING:
        ledger.move(entry, State.QUEUED, "released", "adopted", now, queued_at=now)
    who = {"attempt": owner.fence[0], "token": owner.fence[1], "worker": owner.worker}
    _run(ledger, entry, "adopted", "its claim was lost", owner.lease_s, now, **who, **progress)
    entry.run.loading = owner.loading_s
    return ""


def keep(entry: Entry, checkpoint: Checkpoint, useful_s: float) -> list[Checkpoint]:
    """Point at this checkpoint and the one before; answers what no longer counts."""
    job = entry.job
    if job.checkpoint and checkpoint.step <= job.checkpoint.step:
        return [checkpoint]
    entry.run.useful = useful_s
    entry.job = replace(job, checkpoint=checkpoint, checkpoint_before=job.checkpoint, build=checkpoint.build)
    return [job.checkpoint_before] if job.checkpoint_before else []


def start_from(entry: Entry, step: int, *, exact: bool) -> None:
    """Where the running attempt begins."""
    if step == 0:
        entry.job = replace(entry.job, from_step=0, **give_up_steps(entry))
        return
    job = entry.job
    changes: dict[str, Any] = {"from_step": step, "step": step, "exact": job.exact and exact}
    if job.checkpoint and step < job.checkpoint.step:
        changes |= {"checkpoint": job.checkpoint_before, "checkpoint_before": None}
    entry.job = replace(job, **changes)


def give_up_steps(entry: Entry) -> dict[str, Any]:
    """Changes of a job that begins at step 0 again: what was kept is wasted."""
    job = entry.job
    for number, row in entry.rows.items():
        wasted = rules.micro(row.spent.wasted + row.spent.useful)
        entry.rows[number] = replace(row, spent=replace(row.spent, wasted=wasted, useful=0.0))
    return {
        "checkpoint": None,
        "checkpoint_before": None,
        "build": "",
        "step": 0,
        "exact": True,
        "restarts": job.restarts + (job.checkpoint is not None),
        "gpu_s_wasted": rules.micro(job.gpu_s_wasted + job.gpu_s_useful),
        "gpu_s_useful": 0.0,
    }


def told(entry: Entry) -> Spent:
    """GPU-seconds of the running attempt as far as renewals and checkpoints told."""
    run = entry.run
    ran = run.renewed_at - entry.job.claimed_at
    return Spent(run.useful, max(ran - run.useful - run.loading, 0.0), run.loading)


def close(entry: Entry, end: str, reason: str, spent: Spent, kept_step: int, now: float) -> dict[str, Any]:
    """The running attempt ends: its row is written. Answers the changes of the record: step and sums."""
    job, changes = entry.job, {"step": kept_step}
    sums: dict[str, Any] = {}
    exact = Spent(*(rules.micro(seconds) for seconds in (spent.useful, spent.wasted, spent.loading)))
    for kind in ("useful", "wasted", "loading"):
        sums[f"gpu_s_{kind}"] = rules.micro(getattr(job, f"gpu_s_{kind}") + getattr(spent, kind))
    entry.rows[job.attempt] = AttemptRecord(
        number=job.attempt,
        worker=job.worker,
        claimed_at=job.claimed_at,
        ended_at=now,
        end=end,
        reason=reason,
        from_step=job.from_step,
        to_step=kept_step,
        spent=exact,
    )
    return changes | sums


def kept_step(job: Job) -> int:
    """Steps that outlive the running attempt."""
    return job.checkpoint.step if job.checkpoint else 0


def waiting_state(job: Job) -> State:
    """Where a job waits between two attempts."""
    return State.HELD if job.build else State.PENDING


def lose(ledger: Ledger, entry: Entry, max_crashes: int, reason: str, now: float) -> None:
    """A RUNNING job whose worker is gone."""
    crashes = entry.job.crashes + 1
    to, kind, changes = waiting_state(entry.job), "lost", {}
    if crashes >= max_crashes:
        to, kind = State.FAILED, "failed"
        changes = {"error_type": "JobFailed", "error": rules.lost_text(entry.job, crashes)}
    changes |= close(entry, "lost", reason, told(entry), kept_step(entry.job), now)
    ledger.crashes += 1
    ledger.move(entry, to, kind, reason, now, crashes=crashes, **changes)


def mean_s_between_losses(ledger: Ledger) -> float:
    """Crashes seen over GPU-seconds seen, beginning with a guess."""
    return rules.micro((rules.GUESSED_GPU_S + ledger.gpu_s) / (1 + ledger.crashes))


def results(job: Job, outcome: Outcome) -> dict[str, Any]:
    """What ``finish`` writes beside the attempt's end."""
    names = ("film", "manifest", "frames_sha256", "error_type", "error")
    return {name: getattr(outcome, name) or getattr(job, name) for name in names}


def _run(
    ledger: Ledger, entry: Entry, kind: str, reason: str, lease_s: float, now: float, **changes: Any
) -> None:
    entry.run = Run(renewed_at=now)
    changes |= {"claimed_at": now, "started_at": entry.job.started_at or now, "order": "", "home": ""}
    changes |= {"lease_until": rules.micro(now + lease_s), "from_step": 0}
    changes = {"stepped_at": now, "step_s": 0.0} | changes
    ledger.move(entry, State.RUNNING, kind, reason, now, **changes)
