"""Jobs of a baseline, and the queues in which they wait."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from callsheet.errors import SettingsError
from callsheet.simulator.result import Life
from callsheet.simulator.scenario import Arrival, Fleet, Model, Scenario


@dataclass(frozen=True, slots=True)
class Lane:
    """A model and the fleets that can run it."""

    model: Model
    speeds: dict[int, float]  # place of the fleet in the scenario -> speed against the reference GPU
    fits: tuple[int, ...]  # places of the fleets that can run it


@dataclass(slots=True, eq=False)
class Job:
    """One arrival on its way."""

    life: Life
    lane: Lane
    rank: int  # place of its tier; 0 is served first
    queue: int
    pool: int  # GPUs of this pool run it


def lanes_of(scenario: Scenario) -> dict[str, Lane]:
    """Every model by name, also those that fit nowhere."""
    return {model.name: _lane(model, scenario.fleets) for model in scenario.models}


def lane_for(arrival: Arrival, lanes: dict[str, Lane]) -> Lane:
    """The lane of a job. Raises SettingsError when its model is unknown or fits no GPU."""
    lane = lanes.get(arrival.model)
    if lane is None:
        raise SettingsError(
            f"The traffic asks for model {arrival.model!r}, which the scenario does not describe. "
            f"Add it to the models, or take its jobs out of the traffic."
        )
    if not lane.fits:
        raise SettingsError(
            f"Jobs of model {arrival.model!r} fit no GPU of the fleet: it needs {lane.model.vram_gb:g} GB "
            f"and a speed on one of the fleet's classes. Add such GPUs, or take its jobs out of the traffic."
        )
    return lane


def _lane(model: Model, fleets: tuple[Fleet, ...]) -> Lane:
    speeds = {
        place: model.speed[fleet.gpu_class]
        for place, fleet in enumerate(fleets)
        if fleet.count and model.speed.get(fleet.gpu_class, 0.0) > 0.0 and model.vram_gb <= fleet.vram_gb
    }
    return Lane(model, speeds, tuple(speeds))


class Queues:
    """Some queues. Each is first in, first out among the jobs that fit the GPU that asks."""

    def __init__(self, count: int) -> None:
        # One deque per set of fleets that fit, so that no GPU looks at all the jobs that do not fit it.
        self._lines: list[dict[tuple[int, ...], deque[tuple[int, Job]]]] = [{} for _ in range(count)]
        self._first = self._last = 0

    def append(self, job: Job) -> None:
        """To the end of its queue."""
        self._last += 1
        self._line(job).append((self._last, job))

    def put_back(self, job: Job) -> None:
        """To the front of its queue."""
        self._first -= 1
        self._line(job).appendleft((self._first, job))

    def take(self, queues: tuple[int, ...], fleet: int) -> Job | None:
        """The first job, in the order of these queues, that fits GPUs of a fleet."""
        for queue in queues:
            fitting = [line for fits, line in self._lines[queue].items() if line and fleet in fits]
            if fitting:
                return min(fitting, key=_head).popleft()[1]
        return None

    def _line(self, job: Job) -> deque[tuple[int, Job]]:
        return self._lines[job.queue].setdefault(job.lane.fits, deque())


def _head(line: deque[tuple[int, Job]]) -> int:
    return line[0][0]
