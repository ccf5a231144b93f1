"""When a worker is to load weights: what is desired of it, asked for until it is there."""

from __future__ import annotations

from collections.abc import Callable

from callsheet.records.lanes import Desired
from callsheet.workers.slate import LOADING, Running

AGAIN_S = 5.0  # an idle worker that does not load asks again


class WeightsOrder:
    """Puts the order behind what the child does now: once per attempt, and again while the child idles.

    The order is a message that the child takes between two jobs. It may be lost, come twice or come too
    late: the child looks whether it is still desired.
    """

    def __init__(self, ask: Callable[[str], object]) -> None:
        self._ask = ask
        self._asked: tuple[str, float, str] = ("", 0.0, "")  # lane, time of the wish, attempt under way
        self._asked_at = float("-inf")

    def look(self, wish: Desired | None, running: Running, now: float) -> None:
        """``now``: seconds by any steady clock."""
        if wish is None or not wish.load or wish.load in running.resident or running.phase == LOADING:
            return
        asked = (wish.load, wish.at, running.token)
        if asked == self._asked and (running.job_id or now - self._asked_at < AGAIN_S):
            return
        self._asked, self._asked_at = asked, now
        self._ask(wish.load)
