"""The virtual clock: what happens, in order of time."""

from __future__ import annotations

import heapq
from collections.abc import Callable

EPOCH_S = 1_000_000.0  # virtual time 0 as the store sees it: a time of 0 means "not yet" in records


class Timeline:
    """Runs acts at their times; acts at one time run in the order in which they were asked for."""

    def __init__(self) -> None:
        self.now = 0.0
        self._acts: list[tuple[float, int, Callable[[], object]]] = []
        self._count = 0

    def at(self, when: float, act: Callable[[], object]) -> None:
        """Do it then; a time that has passed means now."""
        self._count += 1
        heapq.heappush(self._acts, (max(when, self.now), self._count, act))

    def after(self, delay_s: float, act: Callable[[], object]) -> None:
        """Do it so many seconds from now."""
        self.at(self.now + delay_s, act)

    def run(self, goes_on: Callable[[], bool]) -> None:
        """Until nothing is left to do, or ``goes_on`` says no."""
        while self._acts and goes_on():
            self.now, _, act = heapq.heappop(self._acts)
            act()

    def store_time(self) -> float:
        """The clock of the store."""
        return EPOCH_S + self.now
