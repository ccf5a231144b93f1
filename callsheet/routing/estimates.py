"""How long things take: a table per lane and GPU class, and what follows from a running job's own steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from callsheet.records.jobs import Job

_AFTER_STEPS = ("decode", "store")


@dataclass(frozen=True, slots=True)
class LaneSpec:
    """What serves a lane, and how fast. A lane is a model's name, or "" for the models that share a queue."""

    name: str
    speed: Mapping[str, float]  # GPU class -> work per second; 1 = the reference GPU. Missing: cannot run it
    vram_gb: float = 0.0  # that its weights hold
    load_s: float = 0.0  # that loading them blocks a GPU

    def service_s(self, work_s: float, gpu_class: str) -> float:
        """Seconds that the work takes there. Raises KeyError for a class that cannot run it."""
        return work_s / self.speed[gpu_class]


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds that things take beside the work itself."""

    save_s: float = 0.1  # a checkpoint, while the GPU waits
    restore_s: float = 0.3  # from a checkpoint
    start_s: float = 0.05  # from the decision to the claim


def rough_capacity(gpus: Mapping[str, int], lanes: Iterable[LaneSpec]) -> float:
    """Reference seconds of work per second: each GPU at its mean speed over the lanes that it can run.

    ``gpus``: class -> how many.
    """
    known, total = list(lanes), 0.0
    for gpu_class, count in gpus.items():
        speeds = [spec.speed[gpu_class] for spec in known if gpu_class in spec.speed]
        total += count * sum(speeds) / len(speeds) if speeds else 0.0
    return total


@dataclass(frozen=True, slots=True)
class Ends:
    """What is expected of a running attempt, seconds from now."""

    frees_s: float  # until it ends
    yields_s: float  # until its next step has ended


def ends(job: Job, spec: LaneSpec | None, gpu_class: str, now: float) -> Ends:
    """Expected end and next step of a running attempt.

    From its own steps once its worker measured them, before that from the estimate at submit. An attempt that
    is late is expected to take as long again as it is late, so that nobody waits for ever for one that
    hangs.
    """
    if job.phase in _AFTER_STEPS:
        return Ends(0.0, 0.0)
    steps = max(job.steps, 1)
    if job.step_s > 0:
        return _expect((steps - job.step) * job.step_s - max(now - job.stepped_at, 0.0), job.step_s)
    speed = spec.speed.get(gpu_class, 0.0) if spec else 0.0
    step_s = job.work_s / (speed or 1.0) / steps
    begins = job.claimed_at + spec.load_s if spec and job.phase == "load" else job.stepped_at
    waits = begins - now
    expected = _expect(waits + (steps - max(job.step, job.from_step)) * step_s, step_s)
    return Ends(expected.frees_s, waits + step_s) if waits > 0 else expected


def _expect(left_s: float, step_s: float) -> Ends:
    """``left_s``: seconds to the expected end, negative for an attempt that is late."""
    if left_s < 0:
        return Ends(-left_s, 0.0)
    return Ends(left_s, (left_s % step_s or step_s) if left_s and step_s else 0.0)
