"""Thins or repeats traffic until it asks a fleet for a given share of its capacity."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from callsheet.errors import SettingsError
from callsheet.simulator.capacity import capacity, work_by_model
from callsheet.simulator.scenario import Arrival, Fleet, Model

_MOST_JOBS = 5_000_000  # some GB of memory and an hour of simulation
_APART_S = 1.0  # a repeat arrives up to so long after its original


def scaled(
    arrivals: Sequence[Arrival],
    fleets: Sequence[Fleet],
    models: Sequence[Model],
    *,
    window_s: float,
    load: float,
    seed: int,
) -> tuple[Arrival, ...]:
    """The arrivals, so that their work is about ``load`` times what the fleet can do of it in the window.

    All arrivals lie in the window. Raises SettingsError for a load that needs millions of jobs.
    """
    work = work_by_model(arrivals)
    times = load * capacity(fleets, models, work) * window_s / sum(work.values())
    if times * len(arrivals) > _MOST_JOBS:
        raise SettingsError(
            f"load {load:g} would be {times * len(arrivals):,.0f} jobs; at most {_MOST_JOBS:,} are "
            "simulated: lower load, the fleet or window_s"
        )
    rng = random.Random(f"{seed} load")  # noqa: S311
    copies = (copy for arrival in arrivals for copy in repeated(arrival, times, rng, window_s))
    return tuple(sorted(copies, key=lambda arrival: arrival.at_s))


def repeated(arrival: Arrival, times: float, rng: random.Random, before_s: float) -> Iterator[Arrival]:
    """The arrival ``times`` times, its fraction by chance: itself, and repeats up to 1 s later.

    Repeats arrive before ``before_s``.
    """
    whole = math.floor(times)
    count = whole + (rng.random() < times - whole)
    if count:
        yield arrival
    room_s = min(_APART_S, before_s - arrival.at_s)
    for _ in range(count - 1):
        at_s = arrival.at_s + rng.random() * room_s
        yield replace(arrival, at_s=min(at_s, math.nextafter(before_s, 0.0)))
