"""What is simulated: fleet, models, tiers, costs, traffic. ``reading.py`` makes it from a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Fleet:
    """GPUs of one class."""

    gpu_class: str  # a name of records.gpus.GPU_CLASSES
    count: int
    vram_gb: float  # memory of each, for weights


@dataclass(frozen=True, slots=True)
class Model:
    """A diffusion model as the simulator sees it."""

    name: str
    vram_gb: float  # that its weights hold, and that a job of it needs
    speed: Mapping[
        str, float
    ]  # GPU class -> speed against the reference GPU; a class that is missing cannot run it
    load_s: float  # GPU-seconds that loading its weights blocks


@dataclass(frozen=True, slots=True)
class TierSpec:
    """Service class."""

    name: str
    share: float = 0.0  # guaranteed fraction of each GPU class while it is demanded
    longest_wait_s: float = 0.0  # no admitted job waits longer; 0 = no bound
    max_preemptions: int = 3  # per job; 0 with a tier that is never preempted


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds that things take beside the work itself."""

    save_s: float = 0.1  # a checkpoint, while the GPU waits
    restore_s: float = 0.3  # from a checkpoint
    take_s: float = 0.01  # from a published ticket to the claim of an idle worker
    tick_s: float = 1.0  # between two ticks of the controllers
    urgent_s: float = 0.05  # from a pro job that found no GPU to the tick it asked for
    lease_s: float = 3.0  # a dead worker's job is seen lost so long after
    save_every_s: float = 30.0  # between two checkpoints in the background, at no cost of GPU time


@dataclass(frozen=True, slots=True)
class Spike:
    """More traffic for a while: ``10x@900s+300s:free``."""

    factor: float  # arrivals are multiplied by it
    begins_s: float
    lasts_s: float
    tier: str = ""  # only of this tier; "" = of all


@dataclass(frozen=True, slots=True)
class Death:
    """A GPU that dies, and comes back."""

    at_s: float
    gpu_class: str
    count: int = 1
    back_after_s: float = 0.0  # 0 = never


@dataclass(frozen=True, slots=True)
class Arrival:
    """One job of the traffic, in order of arrival."""

    at_s: float  # since the beginning
    tenant: str
    tier: str
    model: str
    work_s: float  # seconds on the reference GPU, with weights loaded
    steps: int  # denoising steps; it can be preempted at the end of each


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything a run depends on; two runs of equal scenarios give equal results."""

    name: str
    fleets: tuple[Fleet, ...]
    models: tuple[Model, ...]
    tiers: tuple[TierSpec, ...]  # the first is served first
    arrivals: tuple[Arrival, ...]
    window_s: float  # measured from 0 to here; arrivals all lie in it
    costs: Costs = field(default_factory=Costs)
    deaths: tuple[Death, ...] = ()
    spikes: tuple[Spike, ...] = ()  # already in ``arrivals``; told for the report
    seed: int = 3
    load: float = 0.0  # offered work over capacity that the arrivals were scaled to; 0 = as they came
    noise: float = 0.0  # sigma of the log error of the policy's estimates of work
