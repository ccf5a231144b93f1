"""Pictures of small fleets, for tests of the policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Job
from callsheet.records.lanes import Desired, Head, Waiting
from callsheet.records.states import State
from callsheet.routing.classes import KNOWN
from callsheet.routing.estimates import LaneSpec
from callsheet.routing.queues import lane_of, parse_queue, queue_name
from callsheet.routing.rebalance import Plan
from callsheet.routing.residency import Replicas
from callsheet.routing.seating import Heir
from callsheet.routing.seats import Seat
from callsheet.routing.snapshot import Memory, Snapshot
from callsheet.routing.tiers import TIERS, TierRule
from tests.support.jobs import request

NOW = 10_000.0
SPEED = {"a100": 1.0, "h100": 2.0, "l40s": 0.5}


def lane(
    name: str, *, vram_gb: float = 40.0, load_s: float = 10.0, speed: Mapping[str, float] = SPEED
) -> LaneSpec:
    """A lane; by default two of them fit into an A100."""
    return LaneSpec(name, dict(speed), vram_gb, load_s)


def lanes(*specs: LaneSpec) -> dict[str, LaneSpec]:
    """The lanes by name."""
    return {spec.name: spec for spec in specs}


def gpu(gpu_class: str = "a100", index: int = 0, *, warm: Iterable[str] = (), vram_gib: int = 0) -> Gpu:
    """A live GPU that has the weights of some lanes."""
    return Gpu(
        name=f"{gpu_class}-{index}@node",
        gpu_class=gpu_class,
        vram_gib=vram_gib or KNOWN[gpu_class].vram_gib,
        uuid=f"declared-{index}",
        host="node",
        index=index,
        resident=tuple(warm),
    )


def job(
    name: str = "victim", *, tier: str = "free", of: str = "wan", need: str = "a100", **changes: Any
) -> Job:
    """A running job in the middle of its steps, that waited no time at all."""
    fields: dict[str, Any] = {"step": 2, "steps": 8, "phase": "denoise", "work_s": 80.0, **changes}
    times: dict[str, Any] = {
        at: fields.pop(at, NOW) for at in ("created_at", "started_at", "claimed_at", "stepped_at")
    }
    return Job(
        id=name,
        state=State.RUNNING,
        request=request(tier=tier),
        need_gib=1.0,
        gpu_class=need,
        queue=queue_name(tier, need, of),
        **times,
        **fields,
    )


def seat(
    gpu_class: str = "a100",
    index: int = 0,
    *,
    runs: Job | None = None,
    warm: Iterable[str] = (),
    frees_s: float = 60.0,
    yields_s: float = 2.0,
    promised: bool = False,
    loading: str = "",
    vram_gib: int = 0,
) -> Seat:
    """A seat. Without a job it is idle; with one, that job ends and yields when told here."""
    has = frozenset(warm) | ({lane_of(runs.queue)} if runs else frozenset())
    return Seat(
        gpu=gpu(gpu_class, index, warm=sorted(has), vram_gib=vram_gib),
        job=runs,
        lane=lane_of(runs.queue) if runs else "",
        frees_s=frees_s if runs or loading else 0.0,
        yields_s=yields_s if runs or loading else 0.0,
        promised=promised,
        loading=loading,
        warm=has,
    )


def heir(name: str = "pro", *, of: str = "wan", need: str = "l40s", work_s: float = 10.0) -> Heir:
    """A waiting pro job."""
    return Heir(name, "pro", of, need, work_s, key=NOW)


def waiting(
    queue: str, jobs: int, *, work_s: float = 10.0, key: float = NOW, offered_s: float = 0.0
) -> Waiting:
    """A backlog of so many jobs of ``work_s`` each, a second apart."""
    heads = tuple(Head(f"{queue}-{n}", key + n, work_s, key + n) for n in range(jobs))
    return Waiting(queue, jobs, jobs * work_s, offered_s or jobs * work_s, heads)


def snapshot(
    seats: Sequence[Seat],
    queued: Sequence[Waiting] = (),
    *,
    specs: Mapping[str, LaneSpec],
    desired: Mapping[str, Desired] | None = None,
    memory: Memory | None = None,
    tiers: Sequence[TierRule] = TIERS,
) -> Snapshot:
    """The picture of a fleet at ``NOW``."""
    return Snapshot(NOW, seats, queued, specs, desired or {}, memory or Memory(), tiers)


def replicas(
    seats: Sequence[Seat],
    specs: Mapping[str, LaneSpec],
    targets: Mapping[str, Mapping[str, float]] | None = None,
    cover: Mapping[str, float] | None = None,
) -> Replicas:
    """The weights that the seats have, against these targets."""
    made = Replicas(specs, targets or {}, cover or {})
    made.count(seats)
    return made


def carried_out(before: Snapshot, plan: Plan) -> Snapshot:
    """The picture right after a plan was carried out: no time has passed, no worker has done anything."""
    heirs = {seating.heir.job_id for seating in plan.seatings}
    return replace(
        before,
        seats=[_after(one, before, plan) for one in before.seats],
        waiting=[_without(one, heirs) for one in before.waiting],
        desired={**before.desired, **plan.desired},
        memory=plan.memory,
    )


def _after(one: Seat, before: Snapshot, plan: Plan) -> Seat:
    load = plan.desired[one.gpu.name].load if one.gpu.name in plan.desired else one.loading
    blocked_s = before.lanes[load].load_s if load and load != one.loading and one.job is None else 0.0
    given = [seating for seating in plan.seatings if seating.gpu == one.gpu.name]
    running = replace(one.job, order="yield") if one.job and given and given[0].victim else one.job
    return replace(
        one,
        job=running,
        loading=load,
        promised=one.promised or bool(given),
        frees_s=one.frees_s + blocked_s,
        yields_s=one.yields_s + blocked_s,
    )


def _without(one: Waiting, gone: set[str]) -> Waiting:
    """The backlog without these jobs: their tickets are in direct queues."""
    left = tuple(head for head in one.heads if head.job_id not in gone)
    work_s = one.work_s - sum(head.work_s for head in one.heads if head.job_id in gone)
    return replace(one, jobs=one.jobs - len(one.heads) + len(left), work_s=max(work_s, 0.0), heads=left)


def needs(queued: Iterable[Waiting], of: str) -> set[str]:
    """The classes that the backlogs of a lane need, those that are empty now too."""
    names = [parse_queue(one.queue) for one in queued]
    return {name.gpu_class for name in names if name.lane == of}
