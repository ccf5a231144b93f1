"""Lane moves: GPUs that are to load other weights once their job has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from callsheet.routing.residency import Load, Replicas
from callsheet.routing.seats import Seat
from callsheet.routing.snapshot import Memory
from callsheet.routing.targets import LEAST, able

ENOUGH = 0.8  # of a GPU that a lane lacks in a class: below, a move is not worth its load
SOON_S = 8.0  # GPUs that end their job later are not ordered yet: they may be needed as they are
SHARE = 0.02  # of the fleet that moves in one tick, at least 2 GPUs


class LaneMoves:
    """Moves towards the aims, for lanes whose jobs wait.

    ``waiting``: lane -> jobs; ``needs``: lane -> the smallest class that they were placed on.
    """

    def __init__(self, memory: Memory, replicas: Replicas) -> None:
        self._moves, self._replicas = memory.moves, replicas
        self._wanted = {lane for row in memory.targets.values() for lane in row}
        self._leaves = {(of, frozenset(weights)): gpus for of, weights, gpus in memory.leaves}

    def decide(
        self, seats: Sequence[Seat], waiting: Mapping[str, int], needs: Mapping[str, str]
    ) -> list[Load]:
        """A few per tick, where most is lacking first."""
        left = max(2, round(SHARE * len(seats)))
        free = {seat.gpu.name: seat for seat in seats if not seat.loading and not seat.promised}
        loads: list[Load] = []
        for gpu_class, lane, lacked in self._lacks(waiting):
            if not able(self._replicas.lanes.get(lane), gpu_class, needs.get(lane, "")):
                continue
            for _ in range(min(round(lacked), left)):
                load = self._move(free.values(), gpu_class, lane, lacked)
                if load is None:
                    break
                del free[load.gpu]
                left -= 1
                loads.append(load)
        return loads

    def _lacks(self, waiting: Mapping[str, int]) -> list[tuple[str, str, float]]:
        """(class, lane, GPUs that it lacks there), the most lacking first."""
        found = [
            (gpu_class, lane, lacked)
            for gpu_class, row in self._moves.items()
            for lane, lacked in row.items()
            if waiting.get(lane, 0) > 0 and lacked > ENOUGH
        ]
        nowhere = [lane for lane in waiting if waiting[lane] > 0 and not self._replicas.of_lane[lane]]
        return sorted([*found, *self._first(nowhere)], key=lambda one: (-one[2], one))

    def _first(self, lanes: Iterable[str]) -> Iterator[tuple[str, str, float]]:
        """Lanes that no GPU has get one, however little of it they would use."""
        for lane in lanes:
            rows = [(row.get(lane, 0.0), gpu_class) for gpu_class, row in self._moves.items()]
            lacked, gpu_class = max(rows, default=(0.0, ""))
            if LEAST < lacked <= ENOUGH:
                yield gpu_class, lane, 1.0

    def _move(self, free: Iterable[Seat], gpu_class: str, lane: str, lacked: float) -> Load | None:
        """Of the GPUs whose weights are to leave, the one that loses least and ends soonest."""
        best: tuple[float, float, float, str] | None = None
        chosen: tuple[str, frozenset[str]] | None = None
        goes: tuple[str, ...] = ()
        for seat in free:
            group = (gpu_class, seat.stays.intersection(self._wanted))
            if seat.gpu.gpu_class != gpu_class or lane in seat.warm or seat.frees_s > SOON_S:
                continue
            if self._leaves.get(group, 0.0) <= 0:
                continue
            evicted = self._replicas.evicted(seat, lane)
            if evicted is None:
                continue
            rank = (-min(self._leaves[group], 1.0), evicted[0], seat.frees_s, seat.gpu.name)
            if best is None or rank < best:
                best, chosen, goes = rank, group, evicted[1]
        if best is None or chosen is None:
            return None
        self._leaves[chosen] -= 1.0
        reason = f"lane {lane} lacks {lacked:.1f} GPUs of {gpu_class}"
        return take(best[3], gpu_class, lane, goes, self._replicas, reason)


def less(
    moves: Mapping[str, Mapping[str, float]], loads: Mapping[str, Iterable[str]]
) -> dict[str, dict[str, float]]:
    """What is still to be moved after these loads (class -> lanes)."""
    left = {gpu_class: dict(row) for gpu_class, row in moves.items()}
    for gpu_class, lanes in loads.items():
        for lane in lanes:
            if lane in left.get(gpu_class, {}):
                left[gpu_class][lane] -= 1.0
    return left


def take(gpu: str, gpu_class: str, lane: str, goes: tuple[str, ...], replicas: Replicas, reason: str) -> Load:
    """The decision, counted."""
    replicas.swap(gpu_class, lane, goes)
    return Load(gpu, lane, goes, reason)


def holdings(seats: Iterable[Seat]) -> dict[str, Counter[frozenset[str]]]:
    """Class -> weights -> GPUs that will have these once they have done what they were told."""
    counts: dict[str, Counter[frozenset[str]]] = {}
    for seat in seats:
        counts.setdefault(seat.gpu.gpu_class, Counter())[seat.stays] += 1
    return counts
