"""How long a child may take to obey an order, and how long it may show no progress at all."""

from __future__ import annotations

from dataclasses import dataclass

from callsheet.workers.slate import Running

STEPS = 3  # of its own steps, the longest so far
TAIL = ("load", "decode", "store")  # phases without steps; an order to yield waits for their end


@dataclass(slots=True)
class _Seen:
    """What was seen of one attempt. Times by the caller's clock, seconds."""

    began: float
    changed: float  # when its slate last changed
    running: Running
    step_at: float
    longest_step_s: float = 0.0
    ordered_at: float | None = None


class Grace:
    """Watches one child at a time; asked each round of the keeper."""

    def __init__(self, floor_s: float, stuck_s: float) -> None:
        """``floor_s``: shortest grace. ``stuck_s``: longest time without any progress; 0 = for ever."""
        self._floor_s, self._stuck_s = floor_s, stuck_s
        self._seen: _Seen | None = None

    def overdue(self, running: Running, order: str, now: float) -> str:
        """Why the child is to be killed; "" while it is not."""
        seen = self._look(running, now)
        if order and seen.ordered_at is None:
            seen.ordered_at = now
        elif not order:
            seen.ordered_at = None
        if seen.ordered_at is not None and now - seen.ordered_at > self._allowed_s(seen):
            return f'it did not obey the order "{order}" within {now - seen.ordered_at:.0f} s'
        if self._stuck_s and now - seen.changed > self._stuck_s:
            return f"it showed no progress for {now - seen.changed:.0f} s (phase {running.phase or 'none'})"
        return ""

    def _look(self, running: Running, now: float) -> _Seen:
        seen = self._seen
        if seen is None or seen.running.token != running.token:
            seen = self._seen = _Seen(now, now, running, now)
        if running != seen.running:
            seen.changed = now
            if running.step != seen.running.step or running.phase != seen.running.phase:
                if running.step > seen.running.step:
                    seen.longest_step_s = max(seen.longest_step_s, now - seen.step_at)
                seen.step_at = now
            seen.running = running
        return seen

    def _allowed_s(self, seen: _Seen) -> float:
        """Three steps; for a phase without steps as long as the attempt had run when it was told."""
        assert seen.ordered_at is not None
        if seen.running.phase in TAIL:
            return max(self._floor_s, seen.ordered_at - seen.began)
        return max(self._floor_s, STEPS * seen.longest_step_s)
