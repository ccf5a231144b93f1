"""GPUs of a baseline: what is in their memory, what they run, which of them are idle."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from callsheet.simulator.baseline_jobs import Job
from callsheet.simulator.scenario import Fleet, Model


@dataclass(slots=True, eq=False)
class BaselineGpu:
    """One GPU."""

    fleet: int  # place of its fleet in the scenario
    pool: int
    vram_gb: float
    resident: dict[str, float] = field(default_factory=dict)  # model -> GB; the least recently used first
    attempt: Attempt | None = None  # what it runs
    alive: bool = True

    def has(self, model: Model) -> bool:
        """Whether the weights are there; if so they count as used now."""
        held = self.resident.pop(model.name, None)
        if held is not None:
            self.resident[model.name] = held
        return held is not None

    def make_room(self, model: Model) -> None:
        """Forget the least recently used weights until the model fits."""
        free = self.vram_gb - sum(self.resident.values())
        while free < model.vram_gb and self.resident:
            free += self.resident.pop(next(iter(self.resident)))


@dataclass(slots=True, eq=False)
class Attempt:
    """A job on a GPU. Times are virtual seconds."""

    job: Job
    gpu: BaselineGpu
    taken_s: float
    began_s: float | None = None  # first denoising; None while weights load

    @property
    def speed(self) -> float:
        """Reference seconds of work per second."""
        return self.job.lane.speeds[self.gpu.fleet]


class Idle:
    """GPUs with nothing to do, by pool and fleet."""

    def __init__(self) -> None:
        self._groups: defaultdict[tuple[int, int], list[BaselineGpu]] = defaultdict(list)

    def add(self, gpu: BaselineGpu) -> None:
        """It has nothing to do."""
        self._groups[gpu.pool, gpu.fleet].append(gpu)

    def discard(self, gpu: BaselineGpu) -> None:
        """It is not idle any more, if it was."""
        group = self._groups[gpu.pool, gpu.fleet]
        if gpu in group:
            group.remove(gpu)

    def take(self, job: Job, chance: random.Random) -> BaselineGpu | None:
        """Any that fits the job: plain Celery does not know which one would be best."""
        groups = [self._groups[job.pool, fleet] for fleet in job.lane.fits]
        count = sum(map(len, groups))
        index = chance.randrange(count) if count else 0
        for group in groups:
            if index < len(group):
                return group.pop(index)
            index -= len(group)
        return None


def make_gpus(fleets: tuple[Fleet, ...], parts: list[list[int]]) -> Iterator[BaselineGpu]:
    """All GPUs; ``parts[pool][fleet]`` says how many belong to a pool."""
    for place, fleet in enumerate(fleets):
        for pool, part in enumerate(parts):
            for _ in range(part[place]):
                yield BaselineGpu(place, pool, fleet.vram_gb)
