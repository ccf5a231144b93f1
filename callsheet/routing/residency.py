"""Which weights stay in a GPU's memory, and which go when others are to be loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from callsheet.routing.estimates import LaneSpec
from callsheet.routing.seats import Seat


@dataclass(slots=True)
class Replicas:
    """How many GPUs have each lane's weights, or load them, and how many should.

    The counts change with each decision.
    """

    lanes: Mapping[str, LaneSpec]
    targets: Mapping[str, Mapping[str, float]]  # class -> lane -> GPUs
    cover: Mapping[str, float]  # lane -> GPUs that its pro jobs needed at most, of whatever class
    of_class: Counter[tuple[str, str]] = field(default_factory=Counter)  # (class, lane)
    of_lane: Counter[str] = field(default_factory=Counter)

    def count(self, seats: Iterable[Seat]) -> None:
        """Begin with what the seats will have, once they have done what they were told."""
        for seat in seats:
            for lane in seat.stays:
                self.add(seat.gpu.gpu_class, lane)

    def add(self, gpu_class: str, lane: str, more: int = 1) -> None:
        """One replica more, or one less."""
        self.of_class[gpu_class, lane] += more
        self.of_lane[lane] += more

    def swap(self, gpu_class: str, lane: str, goes: Iterable[str]) -> None:
        """One GPU loads a lane, and others leave it."""
        self.add(gpu_class, lane)
        for other in goes:
            self.add(gpu_class, other, -1)

    def keep_order(self, seat: Seat, lanes: Iterable[str]) -> tuple[str, ...]:
        """Lanes of a seat, what goes first last."""
        return tuple(sorted(lanes, key=lambda of: (self._dear(seat, of), of), reverse=True))

    def wanted(self, lane: str) -> float:
        """GPUs that the lane should have, of all classes."""
        return max(sum(row.get(lane, 0.0) for row in self.targets.values()), self.cover.get(lane, 0.0))

    def lack(self, lane: str) -> float:
        """GPUs that it lacks."""
        return self.wanted(lane) - self.of_lane[lane]

    def loss(self, gpu_class: str, lane: str) -> float:
        """GPUs that it would lack with one replica less in this class; 0 = it has more than it should."""
        target = self.targets.get(gpu_class, {}).get(lane, 0.0)
        here = target - (self.of_class[gpu_class, lane] - 1)
        return max(here, self.wanted(lane) - (self.of_lane[lane] - 1), 0.0)

    def evicted(self, seat: Seat, lane: str) -> tuple[float, tuple[str, ...]] | None:
        """(what it loses, lanes that go) to make room for a lane on a seat; None: it does not fit at all."""
        spec = self.lanes[lane]
        room = seat.gpu.vram_gib - sum(self.lanes[of].vram_gb for of in seat.warm if of in self.lanes)
        going, lost = [], 0.0
        for other in sorted(seat.warm, key=lambda of: (self._dear(seat, of), of)):
            if room >= spec.vram_gb:
                break
            if other in self.lanes and self.lanes[other].vram_gb > 0:
                going.append(other)
                room += self.lanes[other].vram_gb
                lost += min(self.loss(seat.gpu.gpu_class, other), 1.0) * self.lanes[other].load_s
        return (lost, tuple(going)) if room >= spec.vram_gb else None

    def _dear(self, seat: Seat, lane: str) -> tuple[float, float]:
        """What goes last stands last: what would be lacked, then what is least in excess."""
        load_s = self.lanes[lane].load_s if lane in self.lanes else 0.0
        loss = min(self.loss(seat.gpu.gpu_class, lane), 1.0) * load_s
        return loss, self.wanted(lane) - self.of_lane[lane]


@dataclass(frozen=True, slots=True)
class Load:
    """Weights that a GPU is to load once it has nothing to do, and what leaves for them."""

    gpu: str  # its name
    lane: str
    evicts: tuple[str, ...]
    reason: str
