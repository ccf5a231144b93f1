"""What an idle worker costs: CPU time of its parent and child over some wall time."""

from __future__ import annotations

import time

from benchmarks.deployment import Deployment
from benchmarks.figures import ratio
from benchmarks.machine import cpu_s, family


def measure(deployment: Deployment, *, seconds: float, settle_s: float) -> dict[str, float]:
    """Both workers over the same ``seconds``, after they were left alone for ``settle_s``."""
    time.sleep(settle_s)
    workers = [family(pid) for pid in (deployment.ours_pid, deployment.plain_pid)]
    began, before = time.monotonic(), [_used(pids) for pids in workers]
    time.sleep(seconds)
    wall_s = time.monotonic() - began
    ours, theirs = ((_used(pids) - used) / wall_s for pids, used in zip(workers, before, strict=True))
    return {
        "idle_cpu_share": ours,
        "celery_idle_cpu_share": theirs,
        "idle_cpu_vs_celery": ratio(ours, theirs),
    }


def _used(pids: list[int]) -> float:
    return sum(map(cpu_s, pids))
