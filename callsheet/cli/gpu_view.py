"""What the command line shows of GPUs: a documented JSON shape, and a table. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from callsheet.cli.table import Column, Table
from callsheet.cli.words import NOTHING, span
from callsheet.records.gpus import Gpu, GpuOrder
from callsheet.records.jobs import Job

#: Every state that is shown.
STATES = ("idle", "running", "cordoned", "draining", "drained", "gone")

_LIST = (
    Column("gpu"),
    Column("class", spare=3),
    Column("vram", right=True, spare=4),
    Column("state"),
    Column("job", spare=1),
    Column("steps", right=True, spare=2),
    Column("models", wraps=True, spare=5),
    Column("queues", wraps=True, spare=7),
    Column("seen", right=True, spare=6),
    Column("order", wraps=True),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """One GPU as its worker registered it, if that is alive, and the operators' word about it."""

    name: str
    gpu: Gpu | None
    order: GpuOrder | None

    @property
    def state(self) -> str:
        """One of STATES. A cordoned GPU may still have a job; a drained one has none."""
        if self.gpu is None:
            return "gone"
        if self.order is not None and self.order.action == "draining":
            return "draining" if self.gpu.job_id else "drained"
        if self.order is not None:
            return "cordoned"
        return "running" if self.gpu.job_id else "idle"


def see(
    gpus: Sequence[Gpu],
    orders: Mapping[str, GpuOrder],
    running: Sequence[Job],
    only: Sequence[str] | None = None,
) -> list[Seen]:
    """Every GPU that is alive or has an order, by name; or just those asked for, in that order.

    ``running``: the jobs at work; a heartbeat may be a second behind, and no busy GPU shall look drained.
    """
    at_work = {job.worker: job for job in running}
    alive = {gpu.name: _with_job(gpu, at_work.get(gpu.name)) for gpu in gpus}
    names = sorted({*alive, *orders}) if only is None else only
    return [Seen(name, alive.get(name), orders.get(name)) for name in names]


def _with_job(gpu: Gpu, job: Job | None) -> Gpu:
    return gpu if job is None else replace(gpu, job_id=job.id, step=job.step, steps=job.steps)


def gpu_document(one: Seen, *, now: float) -> dict[str, Any]:
    """One GPU as JSON. Keys and units: ``docs/cli.md``. What is not known of a GPU that is gone is null."""
    gpu = one.gpu
    return {
        "name": one.name,
        "state": one.state,
        "gpu_class": gpu.gpu_class if gpu else None,
        "vram_gib": gpu.vram_gib if gpu else None,
        "host": gpu.host if gpu else None,
        "job_id": (gpu.job_id or None) if gpu else None,
        "step": gpu.step if gpu and gpu.job_id else None,
        "steps": gpu.steps if gpu and gpu.job_id else None,
        "resident": list(gpu.resident) if gpu else [],
        "queues": list(gpu.queues) if gpu else [],
        "build": (gpu.build or None) if gpu else None,
        "seen_at": gpu.seen_at if gpu else None,
        "seen_ago_s": _ago(gpu.seen_at, now) if gpu else None,
        "order": _order_document(one.order) if one.order else None,
    }


def _order_document(order: GpuOrder) -> dict[str, Any]:
    return {
        "action": order.action,
        "who": order.who,
        "why": order.why,
        "since_at": order.since,
        "give_up_at": order.give_up_at or None,
    }


def _ago(at: float, now: float) -> float:
    return round(max(now - at, 0.0), 3)


def gpu_list(seen: Sequence[Seen], *, now: float) -> Table:
    """A line for each GPU."""
    empty = "no GPUs: no worker is alive. Start some: `callsheet worker` on a GPU machine, or `callsheet up`"
    return Table(_LIST, [_line(one, now) for one in seen], empty=empty)


def _line(one: Seen, now: float) -> tuple[str, ...]:
    order = _order_text(one.order, one.state, now) if one.order else NOTHING
    gpu = one.gpu
    if gpu is None:
        return (one.name, NOTHING, NOTHING, one.state, *[NOTHING] * 5, order)
    return (
        one.name,
        gpu.gpu_class,
        f"{gpu.vram_gib} GiB",
        one.state,
        gpu.job_id or NOTHING,
        f"{gpu.step}/{gpu.steps}" if gpu.job_id else NOTHING,
        " ".join(gpu.resident) or NOTHING,
        " ".join(gpu.queues) or NOTHING,
        f"{span(now - gpu.seen_at)} ago",
        order,
    )


def _order_text(order: GpuOrder, state: str, now: float) -> str:
    """Who, why, since when, and what becomes of its job if it has one."""
    said = f"{order.action}: {order.why}, by {order.who} {span(now - order.since)} ago"
    if state != "draining":
        return said
    if not order.give_up_at:
        return f"{said}; its job may end"
    left = order.give_up_at - now
    return f"{said}; its job is handed back " + (f"in {span(left)}" if left > 0 else "now")
