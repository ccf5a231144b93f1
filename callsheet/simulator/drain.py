"""How fast a queue is back to normal after a spike, exactly: from the life of every job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from callsheet.simulator.result import Life
from callsheet.simulator.scenario import Spike

BEFORE_S = 60.0  # normal is the longest queue of so long before the spike

Steps = Sequence[tuple[float, int]]  # moment -> jobs that wait from then on, in order


def drain_s(spike: Spike, lives: Iterable[Life], window_s: float) -> float | None:
    """Seconds from a spike's end until no more jobs wait than at most in the 60 s before it.

    A job waits from its arrival to its first start. None when that never comes.
    """
    steps = waiting_steps(lives)
    level = _most(steps, spike.begins_s - BEFORE_S, spike.begins_s)
    ends_s = min(spike.begins_s + spike.lasts_s, window_s)
    if _count_at(steps, ends_s) <= level:
        return 0.0
    return next((at - ends_s for at, count in steps if at > ends_s and count <= level), None)


def waiting_steps(lives: Iterable[Life]) -> Steps:
    """How many jobs wait, at every moment at which that changes."""
    changes: Counter[float] = Counter()
    for life in lives:
        if not life.refused:
            changes[life.arrival.at_s] += 1
            if life.started_at is not None:
                changes[life.started_at] -= 1
    count, steps = 0, []
    for at, change in sorted(changes.items()):
        count += change
        steps.append((at, count))
    return steps


def _count_at(steps: Steps, moment: float) -> int:
    return next((count for at, count in reversed(steps) if at <= moment), 0)


def _most(steps: Steps, from_s: float, before_s: float) -> int:
    inside = [count for at, count in steps if from_s < at < before_s]
    return max(_count_at(steps, from_s), *inside, 0)
