"""What ``rebalance --dry-run`` shows: a documented JSON shape, and tables. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from callsheet.cli.table import Column, Table
from callsheet.cli.words import NOTHING
from callsheet.records.decisions import Decision

if TYPE_CHECKING:
    from callsheet.beat.foresee import Foreseen

_DECISIONS = (
    Column("decision"),
    Column("gpus", wraps=True),
    Column("job", spare=2),
    Column("lane", spare=3),
    Column("queues", wraps=True, spare=1),
    Column("why", wraps=True),
)


def foreseen_document(seen: Foreseen) -> dict[str, Any]:
    """A plan as JSON. Keys and units: ``docs/cli.md``."""
    picture, plan = seen.picture, seen.plan
    return {
        "at": picture.now,
        "gpus": len(picture.seats),
        "waiting_jobs": sum(one.jobs for one in picture.waiting),
        "decisions": [decision_document(one) for one in seen.account.decisions],
        "targets": {of: dict(row) for of, row in plan.memory.targets.items()},
        "gpus_wanted": [
            {"gpu_class": of, "gpus": gpus, "have": have, "reason": why}
            for of, have, gpus, why in _wanted(seen)
        ],
        "quotas": dict(sorted(plan.quotas.items())),
        "routes": {queue: list(to) for queue, to in sorted(plan.routes.items())},
    }


def decision_document(one: Decision) -> dict[str, Any]:
    """One decision as JSON; what does not belong to it is null, or an empty list."""
    return {
        "kind": one.kind,
        "gpus": list(one.gpus),
        "job": one.job or None,
        "victim": one.victim or None,
        "lane": one.lane or None,
        "queues": list(one.queues),
        "reason": one.reason,
    }


def foreseen_tables(seen: Foreseen) -> tuple[Table, ...]:
    """Decisions, targets, GPUs wanted, tickets."""
    nothing = "a tick would change nothing now"
    if not seen.picture.seats:
        nothing += ": no GPU is alive that takes jobs (`callsheet gpu list`)"
    decisions = Table(_DECISIONS, [_line(one) for one in seen.account.decisions], empty=nothing)
    return (decisions, _targets(seen), _scale(seen), _tickets(seen))


def _line(one: Decision) -> tuple[str, ...]:
    gpus, queues = " ".join(one.gpus), " ".join(one.queues)
    return (one.kind, *(text or NOTHING for text in (gpus, one.job, one.lane, queues)), one.reason)


def _targets(seen: Foreseen) -> Table:
    columns = (Column("class"), Column("lane"), Column("warm", right=True), Column("target", right=True))
    rows = [
        (gpu_class, lane or "(shared)", str(_warm(seen, gpu_class, lane)), f"{gpus:.1f}")
        for gpu_class, row in sorted(seen.plan.memory.targets.items())
        for lane, gpus in sorted(row.items())
        if round(gpus, 1) or _warm(seen, gpu_class, lane)
    ]
    return Table(columns, rows, title="GPUs that should have a lane's weights")


def _warm(seen: Foreseen, gpu_class: str, lane: str) -> int:
    return sum(lane in seat.warm for seat in seen.picture.seats if seat.gpu.gpu_class == gpu_class)


def _scale(seen: Foreseen) -> Table:
    columns = (
        Column("class"),
        Column("there", right=True),
        Column("wanted", right=True),
        Column("why", wraps=True),
    )
    rows = [(of, str(have), str(gpus), why) for of, have, gpus, why in _wanted(seen)]
    return Table(columns, rows, title="GPUs wanted")


def _wanted(seen: Foreseen) -> Iterator[tuple[str, int, int, str]]:
    """(class, GPUs there, GPUs wanted, why)."""
    for gpu_class, (gpus, why) in sorted(seen.plan.memory.wanted.items()):
        yield gpu_class, sum(seat.gpu.gpu_class == gpu_class for seat in seen.picture.seats), gpus, why


def _tickets(seen: Foreseen) -> Table:
    """Backlogs with jobs, and what may be released of them."""
    columns = (
        Column("backlog"),
        Column("jobs", right=True),
        Column("work", right=True),
        Column("its tickets go to (and may be out there)", wraps=True),
    )
    rows = []
    for one in seen.picture.waiting:
        if one.jobs:
            to = seen.plan.routes.get(one.queue, (one.queue,))
            places = ", ".join(f"{queue} ({seen.plan.quotas.get(queue, 0)})" for queue in to)
            rows.append((one.queue, str(one.jobs), f"{one.work_s:.0f} s", places))
    return Table(columns, rows, title="Waiting")
