"""Records to and from flat Redis hashes: every value a string, absent = the field's default.

Beside the fields of :class:`Job`, a job's hash holds ``body_hash``, ``tenant_tag`` (as in keys),
``idem`` (its idempotency key), ``deadline``, ``not_before``, ``op`` (of its submit), ``deliver_token`` /
``deliver_until`` (who delivers it now), ``checkpoint_step`` and
``checkpoint_format`` (of the newest checkpoint), and of the running attempt ``renewed_at``, ``extended``
(leases that it got because the store was away), ``run_useful`` and ``run_loading`` (GPU-seconds). Times have
six digits: Lua's own number format would cut them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from callsheet.records.gpus import Gpu, GpuOrder
from callsheet.records.jobs import (
    FORMAT,
    AttemptRecord,
    Checkpoint,
    Event,
    Job,
    NewJob,
    Outcome,
    Spent,
    Ticket,
)
from callsheet.records.lanes import Desired, Head, Waiting
from callsheet.records.requests import VideoRequest
from callsheet.records.states import State
from callsheet.store.keys import tag

_READERS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": lambda text: text == "1",
    "State": State,
    "VideoRequest": lambda text: VideoRequest.from_json(json.loads(text)),
    "dict[str, Any]": json.loads,
    "Checkpoint | None": lambda text: read_checkpoint(text) if text else None,
    "tuple[str, ...]": lambda text: tuple(json.loads(text)),
}
_JOB_READERS = {f.name: _READERS[str(f.type)] for f in fields(Job) if f.name != "id"}
_DESIRED = frozenset(f.name for f in fields(Desired))
_CHECKPOINT = frozenset(f.name for f in fields(Checkpoint))
_GPU_READERS = {f.name: _READERS[str(f.type)] for f in fields(Gpu) if f.name != "name"}


def stamp(seconds: float) -> str:
    """A time or duration as stored."""
    return f"{seconds:.6f}"


def pairs(flat: Iterable[str]) -> dict[str, str]:
    """``[field, value, field, value ...]`` as a script answers it."""
    items = iter(flat)
    return dict(zip(items, items, strict=True))


def new_job_fields(job: NewJob) -> dict[str, str]:
    """The part of a new record that the caller knows; the script adds state and times."""
    request = job.request
    fields = {
        "request": request_json(request),
        "body_hash": job.body_hash,
        "need_gib": repr(job.need_gib),
        "gpu_class": job.gpu_class,
        "queue": job.queue,
        "format": str(FORMAT),
        "steps": str(request.steps),
        "work_s": stamp(job.work_s),
        "charge_s": stamp(job.charge_s),
        "delay_s": stamp(job.delay_s),
        "tenant_tag": tag(request.tenant),
    }
    # The fewer fields, the faster the submit: absent means none.
    if request.idempotency_key:
        fields["idem"] = request.idempotency_key
    if request.deadline:
        fields["deadline"] = stamp(request.deadline)
    if request.not_before:
        fields["not_before"] = stamp(request.not_before)
    if job.canvas:
        fields["canvas"] = json.dumps(job.canvas, separators=(",", ":"))
    return fields


def request_json(request: VideoRequest) -> str:
    """A request as the record keeps it."""
    return json.dumps(request.to_json(), separators=(",", ":"))


def outcome_fields(outcome: Outcome) -> dict[str, str]:
    """What ``finish`` writes as it stands; GPU-seconds and step need the record."""
    names = ("film", "manifest", "frames_sha256", "error_type", "error")
    return {name: getattr(outcome, name) for name in names if getattr(outcome, name)}


def checkpoint_json(checkpoint: Checkpoint) -> str:
    """A checkpoint as the record keeps it."""
    return json.dumps(asdict(checkpoint), separators=(",", ":"))


def read_checkpoint(text: str) -> Checkpoint:
    """What :func:`checkpoint_json` wrote; fields of a newer version are left out."""
    return Checkpoint(**{name: value for name, value in json.loads(text).items() if name in _CHECKPOINT})


def read_attempt(number: str, text: str) -> AttemptRecord:
    """One row of a job's attempts, as ``_prelude.lua`` writes it."""
    row = json.loads(text)
    return AttemptRecord(
        number=int(number),
        worker=row["worker"],
        claimed_at=float(row["claimed_at"]),
        ended_at=float(row["ended_at"]),
        end=row["end"],
        reason=row["reason"],
        from_step=int(row["from_step"]),
        to_step=int(row["to_step"]),
        spent=Spent(float(row["useful"]), float(row["wasted"]), float(row["loading"])),
    )


def gpu_order_fields(order: GpuOrder) -> dict[str, str]:
    """An order as stored; ``since`` is left to the store."""
    return {
        "action": order.action,
        "who": order.who,
        "why": order.why,
        "give_up_at": stamp(order.give_up_at),
    }


def read_gpu_order(record: Mapping[str, str]) -> GpuOrder:
    """The order of a non-empty hash."""
    times = {name: float(record.get(name, "0")) for name in ("since", "give_up_at")}
    return GpuOrder(record["action"], record.get("who", ""), record.get("why", ""), **times)


def read_job(job_id: str, record: Mapping[str, str]) -> Job:
    """The record of a non-empty hash."""
    known = {name: read(record[name]) for name, read in _JOB_READERS.items() if name in record}
    return Job(id=job_id, **known)


def read_tickets(flat: Iterable[str]) -> list[Ticket]:
    """``[id, ticket, format, queue, id ...]`` as a script answers it."""
    items = iter(flat)
    return [
        Ticket(job_id=job_id, number=int(number), queue=queue, format=int(version))
        for job_id, number, version, queue in zip(items, items, items, items, strict=True)
    ]


def read_waiting(row: Sequence[Any], heads: int) -> Waiting:
    """One row of ``lanes.lua``."""
    queue, jobs, work_s, offered_s, front, published = row
    out = _read_heads(published)
    first = sorted([*out, *_read_heads(front)], key=lambda head: (head.key, head.job_id))[:heads]
    whole_s = max(float(work_s), 0.0) + sum(head.work_s for head in out)
    return Waiting(queue, int(jobs), whole_s, float(offered_s), tuple(first))


def _read_heads(flat: Iterable[str]) -> list[Head]:
    items = iter(flat)
    return [
        Head(job_id, float(tag_), float(work_s), float(created_at), int(number))
        for job_id, tag_, work_s, created_at, number in zip(*[items] * 5, strict=True)
    ]


def desired_json(desired: Desired) -> str:
    """An order to a worker as stored; ``at`` is left to the store."""
    return json.dumps({name: value for name, value in asdict(desired).items() if name != "at"})


def read_desired(text: str) -> Desired:
    """What :func:`desired_json` wrote; fields of a newer version are left out."""
    data = {name: value for name, value in json.loads(text).items() if name in _DESIRED}
    lists = {name: tuple(data.get(name) or ()) for name in ("queues", "keep")}
    return Desired(**(data | lists | {"at": float(data.get("at", 0.0))}))


def read_event(entry: Mapping[str, str]) -> Event:
    """One entry of the events stream."""
    return Event(
        at=float(entry["at"]),
        kind=entry["kind"],
        attempt=int(entry["attempt"]),
        worker=entry["worker"],
        reason=entry["reason"],
    )


def gpu_fields(gpu: Gpu) -> dict[str, str]:
    """A GPU as stored; ``seen_at`` is left to the store."""
    return {name: _plain(value) for name, value in asdict(gpu).items() if name not in ("name", "seen_at")}


def read_gpu(name: str, record: Mapping[str, str]) -> Gpu:
    """The GPU of a non-empty hash."""
    known = {field: read(record[field]) for field, read in _GPU_READERS.items() if field in record}
    return Gpu(name=name, **known)


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return json.dumps(value) if isinstance(value, (tuple, list)) else str(value)
