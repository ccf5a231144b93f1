"""The seats of one decision round, sorted so that a waiting job looks at few of them.

Seats of one class with the same weights are alike but for the time at which their job could yield: of those
only the first one counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from callsheet.routing.estimates import LaneSpec
from callsheet.routing.seats import Seat
from callsheet.routing.targets import runs
from callsheet.routing.tiers import TierRule

NEAR_END = ("decode", "store")  # phases after the last step
AGED = 0.8  # of the longest wait: a job that waited so long is protected

_Kind = tuple[str, float, frozenset[str]]  # class, memory, weights


class Benches:
    """Seats that nobody was given yet: idle ones, those that may yield, those whose end is waited for."""

    def __init__(
        self, seats: Sequence[Seat], lanes: Mapping[str, LaneSpec], tiers: Mapping[str, TierRule]
    ) -> None:
        self._lanes = lanes
        self._taken: set[str] = set()
        self._runs: dict[tuple[str, str, str, float], bool] = {}
        self._idle: defaultdict[_Kind, list[Seat]] = defaultdict(list)
        self._yielding: defaultdict[_Kind, list[Seat]] = defaultdict(list)
        self._ending: defaultdict[str, list[Seat]] = defaultdict(list)
        for seat in sorted(seats, key=lambda one: (one.yields_s, one.gpu.name)):
            self._sort_in(seat, tiers)
        for ends in self._ending.values():
            ends.sort(key=lambda one: one.frees_s)

    def _sort_in(self, seat: Seat, tiers: Mapping[str, TierRule]) -> None:
        if seat.promised:
            return
        kind = (seat.gpu.gpu_class, seat.gpu.vram_gib, seat.warm)
        if seat.idle:
            self._idle[kind].append(seat)
        elif may_yield(seat, tiers):
            self._yielding[kind].append(seat)
        if seat.job is not None and not seat.loading:
            for lane in seat.warm:
                self._ending[lane].append(seat)

    def take(self, seat: Seat) -> None:
        """It is given away."""
        self._taken.add(seat.gpu.name)

    def warm(self, lane: str, need: str, *, yielding: bool) -> Iterator[Seat]:
        """The first of each kind that has the weights of a lane, and may run a job of it."""
        for kinds in (self._idle, self._yielding) if yielding else (self._idle,):
            for kind, bench in kinds.items():
                if lane in kind[2] and (seat := self._first(bench)) and self.fits(seat, lane, need):
                    yield seat

    def cold(self, lane: str, need: str, *, yielding: bool) -> Iterator[Seat]:
        """The first of each kind that lacks them, has no order to load others, and may run a job of it."""
        for kinds in (self._idle, self._yielding) if yielding else (self._idle,):
            for kind, bench in kinds.items():
                if lane not in kind[2]:
                    seat = next((one for one in self._left(bench) if not one.loading), None)
                    if seat is not None and self.fits(seat, lane, need):
                        yield seat

    def ending(self, lane: str, need: str) -> Seat | None:
        """The one with the weights of a lane whose job ends first."""
        left = self._left(self._ending[lane])
        return next((seat for seat in left if self.fits(seat, lane, need)), None)

    def fits(self, seat: Seat, lane: str, need: str) -> bool:
        """Whether it runs jobs of a lane."""
        key = (lane, need, seat.gpu.gpu_class, seat.gpu.vram_gib)
        if key not in self._runs:
            self._runs[key] = runs(self._lanes.get(lane), seat.gpu, need)
        return self._runs[key]

    def _first(self, bench: list[Seat]) -> Seat | None:
        return next(self._left(bench), None)

    def _left(self, bench: list[Seat]) -> Iterator[Seat]:
        """Those that are left; the taken ones at the front are forgotten."""
        while bench and bench[0].gpu.name in self._taken:
            bench.pop(0)
        return (seat for seat in bench if seat.gpu.name not in self._taken)


def may_yield(seat: Seat, tiers: Mapping[str, TierRule]) -> bool:
    """Whether the job there may be asked for its GPU."""
    job = seat.job
    if job is None or job.order or seat.promised:
        return False
    rule = tiers.get(job.tier)
    if rule is None or not rule.yields or job.preemptions >= rule.max_preemptions:
        return False
    if job.phase in NEAR_END or seat.frees_s <= seat.yields_s:
        return False  # it is about to end
    waited = job.started_at - job.created_at
    return not rule.longest_wait_s or waited < AGED * rule.longest_wait_s
