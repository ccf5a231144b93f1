"""GPUs and their classes."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class GpuClass:
    """A kind of GPU: what jobs can count on when they name it."""

    name: str  # h100, a100, a100-40g, l40s ...: lower case, letters, digits and "-"
    vram_gib: int  # nominal memory, as its maker says
    price: float  # relative price per hour, A100-80 = 1; small jobs prefer cheap classes
    usable_gib: float = (
        0.0  # what the driver reports in total (ECC and firmware take their part): what jobs can have
    )
    features: int = (
        0  # rank of its generation: 0 fp16 only, 1 bf16, 2 fp8, 3 fp4; a higher one can do all of a lower
    )
    speed: float = 1.0  # of a denoiser, A100 = 1


#: Every known class, by memory. Usable memory: what NVML reports as total, less a bit, as drivers differ.
#: Prices: rough public on-demand prices; only their order matters. Speeds: rough too, for estimates until a
#: job's own steps are measured.
GPU_CLASSES = (
    GpuClass("t4", 16, 0.20, 14.7, features=0, speed=0.1),
    GpuClass("l4", 24, 0.35, 22.0, features=2, speed=0.2),
    GpuClass("a10g", 24, 0.45, 22.0, features=1, speed=0.25),
    GpuClass("rtx4090", 24, 0.30, 23.5, features=2, speed=0.6),
    GpuClass("rtx5090", 32, 0.45, 31.4, features=3, speed=0.8),
    GpuClass("a100-40g", 40, 0.75, 39.4, features=1, speed=1.0),
    GpuClass("l40s", 48, 0.65, 44.5, features=2, speed=0.6),
    GpuClass("rtx6000ada", 48, 0.60, 47.4, features=2, speed=0.55),
    GpuClass("a100", 80, 1.00, 79.1, features=1, speed=1.0),
    GpuClass("h100", 80, 1.60, 79.1, features=2, speed=2.0),
    GpuClass("h200", 141, 2.20, 139.8, features=2, speed=2.1),
    GpuClass("b200", 180, 3.20, 178.3, features=3, speed=3.5),
)


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
    build: str = ""  # what decides the bits of its films; see ``workers.replay``
    declared: bool = field(default=False)  # True: named in CALLSHEET_GPUS, no hardware looked at


@dataclass(frozen=True, slots=True)
class GpuOrder:
    """An operator's word about one GPU, kept until it is lifted. Times are store time."""

    action: str  # cordoned: takes nothing new | draining: gives up its job too
    who: str
    why: str
    since: float = 0.0  # set by the store
    give_up_at: float = 0.0  # draining: its job is handed back then; 0 = it may end by itself
