"""Jobs and stores for tests."""

from __future__ import annotations

import itertools
import uuid
from typing import Any

from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Checkpoint, NewJob, Outcome, Spent, Ticket
from callsheet.records.requests import VideoRequest
from callsheet.records.states import State
from callsheet.store.protocol import Lease, Store

QUEUE = "free.h100"
_numbers = itertools.count(1)


def op() -> str:
    """A token as callers draw it."""
    return uuid.uuid4().hex


def request(**changes: Any) -> VideoRequest:
    """A small valid request."""
    fields: dict[str, Any] = {
        "prompt": "a cat on the moon",
        "model": "tiny-wan",
        "negative_prompt": "",
        "width": 64,
        "height": 64,
        "frames": 17,
        "fps": 8,
        "steps": 8,
        "guidance": 5.0,
        "seed": 7,
    }
    return VideoRequest(**{**fields, **changes})


def new_job(
    job_id: str = "",
    *,
    queue: str = QUEUE,
    body: str = "body",
    canvas: Any = None,
    work_s: float = 0.0,
    **changes: Any,
) -> NewJob:
    """A job to submit; further arguments change its request."""
    return NewJob(
        id=job_id or f"job-{next(_numbers)}",
        request=request(**changes),
        body_hash=body,
        need_gib=1.5,
        gpu_class=queue.split(".")[1],
        queue=queue,
        work_s=work_s,
        canvas=canvas or {},
    )


def submitted(store: Store, job_id: str = "", **changes: Any) -> str:
    """Id of a job that waits."""
    return store.submit(new_job(job_id, **changes), op=op()).job_id


def queued(store: Store, job_id: str = "", *, queue: str = QUEUE, **changes: Any) -> Ticket:
    """Ticket of a job that was just released (its backlog was empty before)."""
    submitted(store, job_id, queue=queue, **changes)
    store.set_quotas({queue: 1_000_000}, op=op())
    return store.release(queue, op=op())[-1]


def claimed(
    store: Store, ticket: Ticket, *, worker: str = "h100-0@a", token: str = "", lease_s: float = 10.0
) -> Lease:
    """Lease of a claim that must succeed."""
    lease = store.claim(ticket, worker=worker, token=token or op(), lease_s=lease_s)
    assert isinstance(lease, Lease), lease
    return lease


def running(store: Store, job_id: str = "", *, lease_s: float = 10.0, **changes: Any) -> Lease:
    """Lease of a job that just began."""
    return claimed(store, queued(store, job_id, **changes), lease_s=lease_s)


def renew(store: Store, lease: Lease, *, step: int = 1, lease_s: float = 10.0) -> str:
    """The order that this lease's renewal gets."""
    return store.renew(
        lease.job.id, lease.attempt, lease.token, lease_s=lease_s, step=step, steps=8, phase="denoise"
    )


GPU = Gpu(
    name="h100-0@a",
    gpu_class="h100",
    vram_gib=80,
    uuid="GPU-1",
    host="a",
    index=0,
    queues=("pro.h100", "free.h100"),
    resident=("tiny-wan",),
    job_id="film",
    step=3,
    steps=8,
    declared=True,
)

SUCCESS = Outcome(
    state=State.SUCCEEDED,
    film="file:///films/a.mp4",
    manifest="file:///films/a.json",
    frames_sha256="abc",
    step=8,
    spent=Spent(useful=2.5, wasted=0.25, loading=1.125),
)
FAILURE = Outcome(state=State.FAILED, error_type="ModelError", error="weights are missing", step=3)


def finish(store: Store, lease: Lease, outcome: Outcome = SUCCESS) -> bool:
    """End the attempt."""
    return store.finish(lease.job.id, lease.attempt, lease.token, outcome, op=op())


def reap(store: Store, *, max_crashes: int = 3, limit: int = 100, gap_s: float = 1e9) -> list[str]:
    """What the reaper does; by default no pause counts as an absence of the store."""
    return store.reap(max_crashes=max_crashes, limit=limit, lease_s=3.0, gap_s=gap_s, op=op())


def checkpoint(step: int, *, build: str = "") -> Checkpoint:
    """Facts of a checkpoint whose object is nowhere."""
    return Checkpoint(step, f"checkpoints/job/1/{step}", "abc", 17, build)


def keep(
    store: Store, lease: Lease, *, step: int, useful_s: float = 0.0, build: str = ""
) -> list[Checkpoint] | None:
    """Keep a checkpoint of the running attempt."""
    kept, fence = checkpoint(step, build=build), (lease.job.id, lease.attempt, lease.token)
    return store.keep_checkpoint(*fence, kept, useful_s=useful_s, op=op())


def ended(store: Store, job_id: str = "", outcome: Outcome = SUCCESS, **changes: Any) -> str:
    """Id of a job that ended."""
    lease = running(store, job_id, **changes)
    assert finish(store, lease, outcome)
    return lease.job.id


def kinds(store: Store, job_id: str) -> list[str]:
    """The kinds of the job's events, oldest first."""
    return [event.kind for event in store.events(job_id)]
