"""What idle GPUs do: load for jobs that wait elsewhere (backfill), or for those that are likely to come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from callsheet.routing.moves import take
from callsheet.routing.residency import Load, Replicas
from callsheet.routing.seats import Seat
from callsheet.routing.targets import runs

LACKS = 0.5  # GPUs that a lane lacks before an idle GPU loads it for jobs to come


def cold_starts(
    seats: Sequence[Seat], replicas: Replicas, waiting: Mapping[str, int], needs: Mapping[str, str]
) -> list[Load]:
    """Backfill: idle GPUs load for jobs that would otherwise start later on a GPU of their own lane."""
    idle = {seat.gpu.name: seat for seat in seats if seat.idle}
    loads: list[Load] = []
    if not idle:
        return loads
    for lane in sorted(waiting, key=lambda of: (-waiting[of], of)):
        spec = replicas.lanes.get(lane)
        if spec is None or not waiting[lane]:
            continue
        frees = sorted(seat.frees_s for seat in seats if lane in seat.warm or lane == seat.loading)
        for place in range(waiting[lane]):
            otherwise = frees[place] if place < len(frees) else float("inf")
            if spec.load_s >= otherwise:
                continue  # that job has a GPU soon; those behind it may not
            seat = _cheapest(idle, replicas, lane, needs)
            if seat is None:
                break
            reason = f"backfill: jobs of lane {lane} would wait longer elsewhere"
            loads.append(_load(idle, seat, replicas, lane, reason))
    return loads


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
