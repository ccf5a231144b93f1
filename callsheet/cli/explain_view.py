"""What ``explain`` shows: sentences, a documented JSON shape, and tables. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from callsheet.cli.job_view import event_document
from callsheet.cli.rebalance_view import decision_document
from callsheet.cli.table import Column, Table
from callsheet.cli.words import NOTHING, count, moment, span
from callsheet.records.states import State

if TYPE_CHECKING:
    from callsheet.beat.explain import Explanation, Place
    from callsheet.routing.seats import Seat

SHOWN = 10  # GPUs in the table
ENDED = {
    State.SUCCEEDED: "its film is stored",
    State.FAILED: "it failed",
    State.CANCELLED: "it was cancelled",
    State.EXPIRED: "it was not started by its deadline",
}


def explain_document(found: Explanation, waits_for: str) -> dict[str, Any]:
    """Where a job is, and why, as JSON. Keys and units: ``docs/cli.md``. What does not apply is null."""
    job, expected = found.job, found.expected
    wait_s = expected.wait_s if expected else None
    return {
        "job_id": job.id,
        "state": str(job.state),
        "tier": job.tier,
        "tenant": job.request.tenant,
        "queue": job.queue,
        "why": list(sentences(found, waits_for)),
        "place": _place_document(found.place) if found.place else None,
        "chosen_gpu": found.chosen or None,
        "expected_wait_s": _round(wait_s),
        "expected_end_s": _round(found.ends.frees_s) if found.ends else None,
        "estimated_from": expected.reason if expected else None,
        "classes": [
            {"gpu_class": one.gpu_class, "gpus": one.gpus, "warm": one.warm, "lacks": one.lacks or None}
            for one in found.classes
        ],
        "warm_gpus": [
            {
                "name": seat.gpu.name,
                "gpu_class": seat.gpu.gpu_class,
                "doing": doing(seat),
                "job": seat.job.id if seat.job else None,
                "frees_s": _round(seat.frees_s),
            }
            for seat in found.gpus
        ],
        "preemptions": job.preemptions,
        "left_gpus": [event_document(event) for event in found.left],
        "decisions": [{"at": at, **decision_document(one)} for at, one in found.decisions],
    }


def _place_document(place: Place) -> dict[str, Any]:
    return {
        "jobs_before": place.jobs,
        "work_before_s": _round(place.work_s),
        "tier_jobs_before": place.tier_jobs,
        "tier_work_before_s": _round(place.tier_work_s),
        "lane_jobs_before": place.lane_jobs,
        "lane_work_before_s": _round(place.lane_work_s),
        "turn_ahead_s": _round(place.turn_s),
        "longest_wait_s": place.longest_wait_s or None,
        "aged": place.aged,
    }


def sentences(found: Explanation, waits_for: str) -> Iterator[str]:
    """Where it is, and why, in the order in which one would say it."""
    job = found.job
    if job.ended:
        yield _end(found)
    elif job.state is State.RUNNING:
        yield from _running(found)
    else:
        yield from _waiting(found, waits_for)
    if job.preemptions:
        yield f"it gave its GPU to other jobs {_times(job.preemptions)}"
    if job.crashes:
        yield f"it lost its worker {_times(job.crashes)}"


def _end(found: Explanation) -> str:
    job = found.job
    at = f"{moment(job.ended_at)}, {span(found.now - job.ended_at)} ago"
    said = f"{ENDED[job.state]} ({at})"
    return f"{said}: {job.error}" if job.error else said


def _running(found: Explanation) -> Iterator[str]:
    job = found.job
    steps = f"step {job.step} of {job.steps or job.request.steps}"
    yield (
        f"it runs at {job.worker} since {moment(job.claimed_at)} ({span(found.now - job.claimed_at)}): "
        f"attempt {job.attempt}, {job.phase or 'begins'}, {steps}"
    )
    if job.order:
        why = next((event.reason for event in reversed(found.left) if event.kind == "ordered"), "")
        yield f"it is told to {job.order} at its next step" + (f": {why}" if why else "")
    elif found.ends:
        measured = "its steps as measured" if job.step_s > 0 else "its work as reckoned at submit"
        yield f"it is expected to end in about {span(found.ends.frees_s)} (an estimate, from {measured})"


def _waiting(found: Explanation, waits_for: str) -> Iterator[str]:
    job, place = found.job, found.place
    if found.chosen:
        why = f": {found.chosen_why}" if found.chosen_why else ""
        yield f"{found.chosen} was chosen for it and takes it next{why}"
    else:
        where = {
            State.PENDING: f"it waits in backlog {job.queue}",
            State.QUEUED: f"its ticket is out in queue {job.home or job.queue}",
            State.HELD: "it is held",
        }[job.state]
        able = any(one.gpus and not one.lacks for one in found.classes)
        told = waits_for if job.state is State.HELD or not able else ""
        yield f"{where}: it waits for {told}" if told else where
    yield f"it came {span(found.now - job.created_at)} ago"
    if place is not None:
        yield from _line(found, place)
        yield _gpus(found)
        expected = found.expected
        if expected and expected.wait_s is not None:
            yield f"its start is expected in about {span(expected.wait_s)} (an estimate, {expected.reason})"
        elif expected:
            yield f"nothing can be said of its start: {expected.reason}"


def _line(found: Explanation, place: Place) -> Iterator[str]:
    """Who stands before it."""
    if found.job.state is State.PENDING and (place.tier_jobs or place.lane_jobs):
        yield (
            f"before it: {count(place.jobs, 'job')} of its backlog ({span(place.work_s)} of work on the "
            f"reference GPU); {count(place.tier_jobs, 'job')} of tier {found.job.tier}; "
            f"{count(place.lane_jobs, 'job')} that want the same weights"
        )
    elif found.job.state is State.PENDING:
        yield "nothing stands before it"
    tenant = found.job.request.tenant
    if place.turn_s > 0:
        yield (
            f"tenant {tenant} has used its turns: this job's lies {span(place.turn_s)} ahead of those of "
            "tenants within their allowance, who go first"
        )
    if place.aged:
        yield (
            f"it has waited most of the {span(place.longest_wait_s)} that its tier waits at most: it goes "
            "before others, and yields to nobody once it runs"
        )


def _gpus(found: Explanation) -> str:
    if not found.gpus:
        fitting = sum(one.gpus for one in found.classes if not one.lacks)
        return f"no GPU has its weights; {count(fitting, 'GPU')} could load them"
    idle = sum(seat.idle for seat in found.gpus)
    first = "" if idle else f"; the first is expected to be free in {span(found.gpus[0].frees_s)}"
    have = "GPU has" if len(found.gpus) == 1 else "GPUs have"
    return f"{len(found.gpus)} {have} its weights, {idle} idle{first}"


def doing(seat: Seat) -> str:
    """What a GPU does, in words."""
    job = seat.job
    if job is not None:
        steps = f"{job.step}/{job.steps or job.request.steps}"
        then = "yields at its next step" if job.order else f"ends in about {span(seat.frees_s)}"
        said = f"runs {job.tier} job {job.id} ({steps}), which {then}"
    elif seat.loading:
        said = f"loads {seat.loading}"
    else:
        said = "idle"
    return f"{said}; its next job is chosen" if seat.promised else said


def explain_tables(found: Explanation, waits_for: str) -> tuple[Table, ...]:
    """Facts, GPU classes, GPUs, decisions, why it left GPUs."""
    job = found.job
    facts = [("job", job.id), ("state", str(job.state)), ("tier", f"{job.tier}, {job.request.tenant}")]
    facts += [("why" if not at else "", text) for at, text in enumerate(sentences(found, waits_for))]
    head = Table((Column("fact"), Column("value", wraps=True)), facts, bare=True)
    return head, _classes(found), _seats(found), _decisions(found), _left(found)


def _classes(found: Explanation) -> Table:
    columns = (
        Column("class"),
        Column("gpus", right=True),
        Column("warm", right=True),
        Column("fits", wraps=True),
    )
    rows = [
        (one.gpu_class, str(one.gpus), str(one.warm), f"no: {one.lacks}" if one.lacks else "yes")
        for one in found.classes
    ]
    return Table(columns, rows, title="GPU classes")


def _seats(found: Explanation) -> Table:
    columns = (Column("gpu"), Column("class", spare=1), Column("does", wraps=True))
    rows = [(seat.gpu.name, seat.gpu.gpu_class, doing(seat)) for seat in found.gpus[:SHOWN]]
    more = f" (the first {SHOWN} of {len(found.gpus)})" if len(found.gpus) > SHOWN else ""
    return Table(columns, rows, title=f"GPUs with its weights{more}")


def _decisions(found: Explanation) -> Table:
    columns = (
        Column("at", spare=1),
        Column("decision"),
        Column("gpus", wraps=True),
        Column("why", wraps=True),
    )
    rows = [(moment(at), one.kind, " ".join(one.gpus) or NOTHING, one.reason) for at, one in found.decisions]
    return Table(columns, rows, title="Decisions of the last ticks")


def _left(found: Explanation) -> Table:
    columns = (
        Column("at", spare=1),
        Column("event"),
        Column("worker", spare=2),
        Column("reason", wraps=True),
    )
    rows = [
        (moment(event.at), event.kind, event.worker or NOTHING, event.reason or NOTHING)
        for event in found.left
    ]
    return Table(columns, rows, title="Why it left a GPU")


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _round(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
