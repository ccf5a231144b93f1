"""GPUs and their classes."""

from __future__ import annotations

from dataclasses import dataclass, field



@dataclass(frozen=True, slots=True)
class GpuClass:
    """A kind of GPU: what jobs can count on when they name it."""

    name: str  # h100, a100, a100-40g, l40s ...: lower case, letters, digits and "-"
    vram_gib: int  # nominal memory
    price: float  # relative price per hour, A100-80 = 1; small jobs prefer cheap classes


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU of one node, as its worker registers it."""

    name: str  # h100-0@host: the Celery worker's name
    gpu_class: str  # name of its class
    vram_gib: int  # memory it really has, rounded down
    uuid: str  # NVML UUID, or "declared-<n>"
    host: str  # node name
    index: int  # NVML index on that node
    queues: tuple[str, ...] = ()  # what its worker subscribes to, in order
    resident: tuple[str, ...] = ()  # models whose weights are loaded
    job_id: str = ""  # what it runs now
    step: int = 0  # finished steps of that job
    steps: int = 0  # of how many
    seen_at: float = 0.0  # store time of its last heartbeat, seconds since the epoch
    declared: bool = field(default=False)  # True: named in CALLSHEET_GPUS, no hardware looked at
