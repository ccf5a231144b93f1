"""A sorted set of ids, the in-memory twin of Redis's."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort

_LAST = "\U0010ffff"  # sorts behind every id


class SortedIds:
    """Ids by score; equal scores by id. Finding is O(log n); adding and taking out move memory."""

    def __init__(self) -> None:
        self._scores: dict[str, float] = {}
        self._order: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, member: str) -> bool:
        return member in self._scores

    def add(self, member: str, score: float) -> None:
        """Put it in, or move it to another score."""
        self.discard(member)
        self._scores[member] = score
        insort(self._order, (score, member))

    def discard(self, member: str) -> None:
        """Take it out, if it is there."""
        score = self._scores.pop(member, None)
        if score is not None:
            del self._order[bisect_left(self._order, (score, member))]

    def first(self, limit: int) -> list[str]:
        """The lowest ``limit`` ids."""
        return [member for _, member in self._order[: max(limit, 0)]]

    def up_to(self, score: float, limit: int) -> list[str]:
        """The lowest ``limit`` ids of those at most at ``score``."""
        end = bisect_right(self._order, (score, _LAST))
        return [member for _, member in self._order[: min(end, max(limit, 0))]]

    def count(self, score: float) -> int:
        """How many ids are under ``score``."""
        return bisect_left(self._order, (score, ""))

    def below(self, score: float = math.inf) -> list[str]:
        """The ids under ``score``, highest first."""
        end = bisect_left(self._order, (score, ""))
        return [member for _, member in reversed(self._order[:end])]

    @property
    def top(self) -> float:
        """The highest score; 0 when empty."""
        return self._order[-1][0] if self._order else 0.0
