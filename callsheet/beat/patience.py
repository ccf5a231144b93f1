"""How long a queue may go unserved before its jobs move elsewhere.

A worker whose child died loads torch for ten seconds and is not listed meanwhile: moving its whole backlog
to a larger card for that would leave it idle afterwards. So a queue that was served waits for its workers
to come back; one that never was, since its jobs came before any worker, waits only for the fleet to gather.
"""

from __future__ import annotations

from collections.abc import Iterable

GATHER_S = 3.0  # for a queue that nobody ever served
RETURN_S = 60.0  # for one that was served: child, worker and launcher are started anew well within it


class Patience:
    """What one controller process has seen. Another one sees the same a moment later."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}  # store time at which a queue was first seen unserved
        self._known: set[str] = set()  # queues that were served once

    def exhausted(self, unserved: Iterable[str], served: Iterable[str], now: float) -> list[str]:
        """The unserved queues that have waited long enough, in their order.

        ``now`` is store time, seconds.
        """
        self._known.update(served)
        waiting = list(unserved)
        self._since = {queue: self._since.get(queue, now) for queue in waiting}
        return [queue for queue in waiting if now - self._since[queue] >= self._grace_s(queue)]

    def _grace_s(self, queue: str) -> float:
        return RETURN_S if queue in self._known else GATHER_S
