"""How many jobs one process submits per second: validate, store, publish; beside ``add.delay``."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path

from benchmarks import plain
from benchmarks.figures import median, ratio
from callsheet import generate_video, wiring
from callsheet.app import app
from callsheet.settings import Settings
from tests.support.fleet import gpu
from tests.support.valkey import Valkey

GPU_CLASS = "a100"
QUEUE = f"free.{GPU_CLASS}"
TTL_S = 600.0  # of the heartbeat of the GPU that is not there
ROUNDS = 15  # ours and plain Celery in turn, so that a busy moment meets both
WARM_UP = 50


def measure(folder: Path, *, jobs: int) -> dict[str, float]:
    """Median and best rate of rounds of ``jobs`` submissions. Raises RuntimeError when a ticket is lost."""
    with Valkey() as valkey:
        app.use(Settings(broker_url=valkey.url, data_dir=folder))
        plain.use(_other_database(valkey.url))
        _open_the_gates(quota=10 * jobs * ROUNDS)
        for one in (_submit, _add):
            per_s(one, WARM_UP)
        rates = [(per_s(_submit, jobs), per_s(_add, jobs)) for _ in range(ROUNDS)]
        _check_published(valkey, WARM_UP + ROUNDS * jobs)
    ours, theirs = zip(*rates, strict=True)
    return {
        "submit_per_s": median(ours),
        "submit_per_s_best": max(ours),
        "celery_submit_per_s": median(theirs),
        "submit_vs_celery": ratio(median(ours), median(theirs)),
    }


def per_s(one: Callable[[int], object], times: int) -> float:
    """How often per second ``one`` (of a running number) can be called."""
    began = time.perf_counter()
    for number in range(times):
        one(number)
    return times / (time.perf_counter() - began)


def _submit(number: int) -> None:
    generate_video.delay(prompt="a red balloon over the sea at dawn", model="tiny-wan", seed=number)


def _add(number: int) -> None:
    plain.add.delay(number, number)


def _open_the_gates(quota: int) -> None:
    """A worker that is said to live, and quotas that let every ticket out at once."""
    served = gpu(GPU_CLASS)
    wiring.store().beat_gpu(served, ttl_s=TTL_S)
    wiring.store().set_quotas(dict.fromkeys(served.queues, quota), op=uuid.uuid4().hex)


def _check_published(valkey: Valkey, submitted: int) -> None:
    client = valkey.client()
    waiting = client.llen(QUEUE)
    client.close()
    if waiting != submitted:
        raise RuntimeError(f"{submitted} jobs were submitted, but {waiting} tickets lie in queue {QUEUE}")


def _other_database(url: str) -> str:
    return f"{url.rpartition('/')[0]}/1"
