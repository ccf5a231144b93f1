"""What the command line shows of a job's attempts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from callsheet.cli.table import Column, Table
from callsheet.cli.words import NOTHING, span
from callsheet.records.jobs import AttemptRecord


def attempt_document(one: AttemptRecord) -> dict[str, Any]:
    """One ended attempt as JSON. Keys and units: ``docs/cli.md``."""
    return {
        "number": one.number,
        "worker": one.worker,
        "claimed_at": one.claimed_at,
        "ended_at": one.ended_at,
        "end": one.end,
        "reason": one.reason or None,
        "from_step": one.from_step,
        "to_step": one.to_step,
        "gpu_s_useful": round(one.spent.useful, 3),
        "gpu_s_wasted": round(one.spent.wasted, 3),
        "gpu_s_loading": round(one.spent.loading, 3),
    }


def attempts(ended: Sequence[AttemptRecord]) -> Table:
    """The attempts that have ended, oldest first; GPU time in seconds."""
    columns = (
        Column("attempt", right=True),
        Column("worker", spare=1),
        Column("steps", right=True),
        Column("end"),
        Column("ran", right=True, spare=2),
        Column("useful", right=True, spare=3),
        Column("wasted", right=True, spare=4),
        Column("loading", right=True, spare=5),
        Column("reason", wraps=True),
    )
    return Table(columns, [_line(one) for one in ended], title="Attempts that ended (GPU time in seconds)")


def _line(one: AttemptRecord) -> tuple[str, ...]:
    return (
        str(one.number),
        one.worker,
        f"{one.from_step} -> {one.to_step}",
        one.end,
        span(one.ended_at - one.claimed_at),
        f"{one.spent.useful:.1f}",
        f"{one.spent.wasted:.1f}",
        f"{one.spent.loading:.1f}",
        one.reason or NOTHING,
    )
