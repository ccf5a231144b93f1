"""What a run tells: the life of every job, GPU-seconds by use, samples. ``measures.py`` sums it up."""

from __future__ import annotations

from dataclasses import dataclass, field

from callsheet.simulator.scenario import Arrival


@dataclass(slots=True)
class Life:
    """One job. Times are seconds of the virtual clock; None = has not happened."""

    arrival: Arrival
    started_at: float | None = None  # first denoising work: weights are loaded
    ended_at: float | None = None
    done_s: float = 0.0  # useful work inside the window, seconds on the reference GPU
    preemptions: int = 0
    crashes: int = 0
    redone_s: float = 0.0  # work done again, seconds on the reference GPU
    failed: bool = False  # it ended so, after too many crashes
    refused: bool = False  # not admitted


@dataclass(frozen=True, slots=True)
class Sample:
    """The fleet at one moment, some hundred per run. GPU counts, and jobs that wait by tier."""

    at_s: float
    useful: int
    loading: int
    wasted: int
    idle: int
    waiting: dict[str, int]  # tier -> jobs
    lanes: dict[str, int]  # model -> GPUs that serve its lane


@dataclass(slots=True)
class Result:
    """One policy on one scenario."""

    policy: str
    lives: list[Life]
    gpu_s: dict[str, float]  # inside the window: useful, loading, wasted, idle; they add up to GPUs x window
    loads: int = 0  # inside the window
    preemptions: int = 0  # inside the window
    moved_queues: int = 0  # changes of subscriptions inside the window
    samples: list[Sample] = field(default_factory=list)
    ended_s: float = 0.0  # when the last job ended
    took_s: float = 0.0  # wall time of the simulation
