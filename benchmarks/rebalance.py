"""One rebalance of a large fleet with a long line: 1,000 GPUs and 100,000 waiting jobs.

On a real server: the picture is taken, the plan is made and carried out, several ticks one after the other.
"""

from __future__ import annotations

import random
import resource
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

from benchmarks.figures import median
from callsheet.beat import rebalancer
from callsheet.beat.controllers import Hands
from callsheet.beat.look import look_at
from callsheet.records.gpus import Gpu
from callsheet.records.jobs import NewJob
from callsheet.routing.estimates import LaneSpec
from callsheet.routing.fleet import FleetRules
from callsheet.routing.queues import queue_name
from callsheet.routing.rebalance import rebalance
from callsheet.settings import Settings
from callsheet.store import open_store
from callsheet.store.protocol import Lease, Store
from tests.support.jobs import new_job
from tests.support.valkey import Valkey

CLASSES = (("a100", 80, 500), ("h100", 80, 250), ("l40s", 48, 250))
SIZES = {
    "s": (20.0, {"a100": 1.0, "h100": 1.8, "l40s": 0.65}),
    "m": (38.0, {"a100": 1.0, "h100": 2.0, "l40s": 0.5}),
    "l": (60.0, {"a100": 1.0, "h100": 2.2}),
}
LANES = 8
PRO = 300  # of the waiting jobs
TENANTS = 500
BUSY = 0.5  # of the GPUs run a job
TICKS = 7
TTL_S = 3600.0


def measure(*, jobs: int) -> dict[str, float]:
    """Milliseconds of one tick: the policy alone and with the store, and the memory that it takes."""
    with Valkey() as valkey:
        store = open_store(valkey.url, retention_s=TTL_S)
        hands = _hands(store, FleetRules(lanes=_lanes()))
        rng = random.Random(7)
        gpus = list(_gpus(rng))
        for gpu in gpus:
            store.beat_gpu(gpu, ttl_s=TTL_S)
        _run_some(store, gpus, rng)
        for number in range(jobs):
            store.submit(_job(number, "pro" if number < PRO else "free", rng), op=uuid.uuid4().hex)
        before = _peak_mb()
        policy, whole = zip(*(_tick(hands) for _ in range(TICKS)), strict=True)
        store.close()
    return {
        "rebalance_policy_ms_p50": 1000 * median(policy),
        "rebalance_policy_ms_max": 1000 * max(policy),
        "rebalance_ms_p50": 1000 * median(whole),
        "rebalance_ms_max": 1000 * max(whole),
        "rebalance_peak_mb": _peak_mb() - before,
    }


def _tick(hands: Hands) -> tuple[float, float]:
    """Seconds of the policy alone, and of a whole tick: look, decide, carry out."""
    picture = look_at(hands, hands.store.lanes(rebalancer.HEADS))
    due = replace(picture, memory=replace(picture.memory, targets_at=0.0))  # the program is solved each time
    began = time.perf_counter()
    rebalance(due)
    decided = time.perf_counter()
    rebalancer.rebalance_all(hands)
    return decided - began, time.perf_counter() - decided


def _lanes() -> dict[str, LaneSpec]:
    found = {}
    for number in range(LANES):
        vram_gb, speed = SIZES["msslsmsm"[number % 8]]
        found[f"model-{number}"] = LaneSpec(f"model-{number}", speed, vram_gb, 1.0 + vram_gb / 2.0)
    return found


def _gpus(rng: random.Random) -> Iterator[Gpu]:
    lanes = _lanes()
    for gpu_class, vram_gib, count in CLASSES:
        fitting = [name for name, spec in lanes.items() if gpu_class in spec.speed]
        for index in range(count):
            name = f"{gpu_class}-{index}@bench"
            warm = (rng.choice(fitting),)
            yield Gpu(name, gpu_class, vram_gib, name, "bench", index, resident=warm)


def _run_some(store: Store, gpus: list[Gpu], rng: random.Random) -> None:
    """Half of the GPUs run a free job of the lane that they have."""
    for number, gpu in enumerate(gpu for gpu in gpus if rng.random() < BUSY):
        job = replace(_job(number, "free", rng), id=f"running-{number}")
        queue = queue_name("free", job.gpu_class, gpu.resident[0])
        store.submit(replace(job, queue=queue), op=uuid.uuid4().hex)
        ticket = store.assign(job.id, f"direct.{gpu.name}", reason="bench", op=uuid.uuid4().hex)
        assert ticket is not None
        lease = store.claim(ticket, worker=gpu.name, token=uuid.uuid4().hex, lease_s=TTL_S)
        assert isinstance(lease, Lease)


def _job(number: int, tier: str, rng: random.Random) -> NewJob:
    lane = f"model-{min(int(rng.expovariate(0.5)), LANES - 1)}"
    need = "l40s" if "l40s" in _lanes()[lane].speed else "a100"
    job = new_job(
        f"{tier}-{number}",
        queue=queue_name(tier, need, lane),
        work_s=rng.lognormvariate(3.1, 0.6),
        tier=tier,
        tenant=f"tenant-{rng.randrange(TENANTS)}",
    )
    return replace(job, charge_s=1.0, delay_s=1.0)


def _hands(store: Store, rules: FleetRules) -> Hands:
    """Hands that publish and signal nothing."""
    return Hands(
        store,
        Settings(),
        depth=lambda _queue: 0,
        release=lambda _store, _queue: 0,
        deliver=lambda _store, _job: False,
        publish=lambda _ticket: True,
        signal=lambda _ticket, _gpu: None,
        objects=_nothing,
        broker=lambda: None,
        fleet=rules,
    )


def _nothing() -> NoReturn:
    raise NotImplementedError("the bench stores no objects")


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
