"""What idle GPUs do: load for jobs that wait elsewhere (backfill), or for those that are likely to come."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from callsheet.routing.moves import take
from callsheet.routing.residency import Load, Replicas
from callsheet.routing.seats import Seat
from callsheet.routing.targets import runs

LACKS = 0.5  # GPUs that a lane lacks before an idle GPU loads it for jobs to come


@dataclass(frozen=True, slots=True)
class Queued:
    """Jobs of a lane that no GPU was found for yet."""

    jobs: int
    mean_s: float  # of their work, on the reference GPU


def cold_starts(
    seats: Sequence[Seat], replicas: Replicas, waiting: Mapping[str, Queued], needs: Mapping[str, str]
) -> list[Load]:
    """Backfill: idle GPUs load for jobs that would otherwise start later on a GPU of their own lane.

    A load that pushes out weights which are needed costs the time to load these again, too.
    """
    idle = {seat.gpu.name: seat for seat in seats if seat.idle}
    loads: list[Load] = []
    for lane in sorted(waiting, key=lambda of: (-waiting[of].jobs, of)) if idle else ():
        if lane in replicas.lanes:
            starts = _Starts(seats, lane, waiting[lane].mean_s)
            loads += _backfill(idle, replicas, lane, needs, starts, waiting[lane].jobs)
    return loads


def _backfill(
    idle: dict[str, Seat], replicas: Replicas, lane: str, needs: Mapping[str, str], starts: _Starts, jobs: int
) -> Iterator[Load]:
    """One job after the other: those that have a GPU of their lane sooner wait for it."""
    reason = f"backfill: jobs of lane {lane} would wait longer elsewhere"
    place = 0
    while (seat := _cheapest(idle, replicas, lane, needs)) is not None:
        evicted = replicas.evicted(seat, lane)
        cost_s = replicas.lanes[lane].load_s + (evicted[0] if evicted else 0.0)
        place = next((n for n in range(place, jobs) if starts.of(n) > cost_s), jobs)
        if place == jobs:
            return
        place += 1
        yield _load(idle, seat, replicas, lane, reason)


class _Starts:
    """When the waiting jobs of a lane start on the GPUs that have its weights."""

    def __init__(self, seats: Sequence[Seat], lane: str, mean_s: float) -> None:
        self._frees = sorted(seat.frees_s for seat in seats if lane in seat.warm or lane == seat.loading)
        self._mean_s = mean_s

    def of(self, place: int) -> float:
        """Seconds from now: each GPU takes one job after the other."""
        if not self._frees:
            return math.inf
        rounds, gpu = divmod(place, len(self._frees))
        return self._frees[gpu] + rounds * self._mean_s


def preloads(seats: Sequence[Seat], replicas: Replicas, needs: Mapping[str, str]) -> list[Load]:
    """Idle GPUs load what the fleet lacks, as long as nothing goes that it needs as much."""
    idle = {seat.gpu.name: seat for seat in seats if seat.idle}
    loads: list[Load] = []
    for lane in sorted(replicas.lanes, key=lambda of: (-replicas.lack(of), of)):
        while idle and replicas.lack(lane) > LACKS:
            seat = _cheapest(idle, replicas, lane, needs, at_most=0.0)
            if seat is None:
                break
            loads.append(_load(idle, seat, replicas, lane, f"lane {lane} will want it"))
    return loads


def _cheapest(
    idle: Mapping[str, Seat],
    replicas: Replicas,
    lane: str,
    needs: Mapping[str, str],
    at_most: float = float("inf"),
) -> Seat | None:
    """The idle GPU that loses least by loading a lane; among equals the one that is best at it."""
    spec = replicas.lanes[lane]
    best: tuple[float, float, str] | None = None
    for seat in idle.values():
        gpu_class = seat.gpu.gpu_class
        if lane in seat.warm or not runs(spec, seat.gpu, needs.get(lane, gpu_class)):
            continue
        evicted = replicas.evicted(seat, lane)
        if evicted is None or evicted[0] > at_most:
            continue
        short = replicas.targets.get(gpu_class, {}).get(lane, 0.0) - replicas.of_class[gpu_class, lane]
        rank = (evicted[0], -short, seat.gpu.name)
        if best is None or rank < best:
            best = rank
    return idle[best[2]] if best else None


def _load(idle: dict[str, Seat], seat: Seat, replicas: Replicas, lane: str, reason: str) -> Load:
    evicted = replicas.evicted(seat, lane)
    del idle[seat.gpu.name]
    return take(seat.gpu.name, seat.gpu.gpu_class, lane, evicted[1] if evicted else (), replicas, reason)
