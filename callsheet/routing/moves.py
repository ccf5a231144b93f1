"""Lane moves: GPUs that are to load other weights once their job has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from callsheet.routing.residency import Load, Replicas
from callsheet.routing.seats import Seat
from callsheet.routing.targets import able

ENOUGH = 0.5  # of a GPU that a lane lacks in a class: below, a move is not worth its load
SHARE = 0.02  # of the fleet that moves in one tick, at least 2 GPUs


def lane_moves(
    seats: Sequence[Seat], replicas: Replicas, waiting: Mapping[str, int], needs: Mapping[str, str]
) -> list[Load]:
    """Moves towards the targets, for lanes whose jobs wait.

    ``waiting``: lane -> jobs; ``needs``: lane -> the smallest class that they were placed on.
    """
    left = max(2, round(SHARE * len(seats)))
    free = {seat.gpu.name: seat for seat in seats if not seat.loading and not seat.promised}
    moves = []
    for gpu_class, lane, lacked in _lacks(replicas, waiting):
        if not able(replicas.lanes.get(lane), gpu_class, needs.get(lane, "")):
            continue
        for _ in range(min(round(lacked), left)):
            move = _move(free.values(), gpu_class, lane, lacked, replicas)
            if move is None:
                break
            del free[move.gpu]
            left -= 1
            moves.append(move)
    return moves


def _lacks(replicas: Replicas, waiting: Mapping[str, int]) -> list[tuple[str, str, float]]:
    """(class, lane, GPUs that it lacks there), the most lacking first."""
    found = [
        (gpu_class, lane, target - replicas.of_class[gpu_class, lane])
        for gpu_class, row in replicas.targets.items()
        for lane, target in row.items()
        if waiting.get(lane, 0) > 0
    ]
    return sorted((one for one in found if one[2] > ENOUGH), key=lambda one: (-one[2], one))


def _move(free: Iterable[Seat], gpu_class: str, lane: str, lacked: float, replicas: Replicas) -> Load | None:
    best: tuple[float, float, str] | None = None
    goes: tuple[str, ...] = ()
    for seat in free:
        if seat.gpu.gpu_class != gpu_class or lane in seat.warm:
            continue
        evicted = replicas.evicted(seat, lane)
        if evicted is None:
            continue
        rank = (evicted[0], seat.frees_s, seat.gpu.name)
        if best is None or rank < best:
            best, goes = rank, evicted[1]
    spec = replicas.lanes[lane]
    if best is None or best[0] >= spec.load_s * min(lacked, 1.0):
        return None
    return take(
        best[2], gpu_class, lane, goes, replicas, f"lane {lane} lacks {lacked:.1f} GPUs of {gpu_class}"
    )


def take(gpu: str, gpu_class: str, lane: str, goes: tuple[str, ...], replicas: Replicas, reason: str) -> Load:
    """The decision, counted."""
    replicas.swap(gpu_class, lane, goes)
    return Load(gpu, lane, goes, reason)


def warm_counts(seats: Iterable[Seat]) -> dict[str, Counter[str]]:
    """Class -> lane -> GPUs with its weights, or on the way to them."""
    counts: dict[str, Counter[str]] = {}
    for seat in seats:
        own = counts.setdefault(seat.gpu.gpu_class, Counter())
        own.update(seat.stays)
    return counts
