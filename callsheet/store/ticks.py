"""Single flight of the controllers in memory: the twin of ``begin_tick.lua`` and ``end_tick.lua``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from callsheet.store import rules


@dataclass(slots=True)
class Tick:
    """The newest tick of one controller."""

    number: int = 0
    token: str = ""
    busy_until: float = 0.0
    again: bool = False  # somebody came while it was under way
    report: dict[str, Any] = field(default_factory=dict)
    reported_at: float = 0.0

    def begin(self, number: int, token: str, busy_s: float, now: float) -> bool:
        """True: begun, or begun before under this token."""
        if (number, token) == (self.number, self.token):
            return True
        if self.token and self.busy_until > now:
            self.again = True
            return False
        if self.token and number <= self.number:
            return False
        self.again = False
        self.number, self.token, self.busy_until = number, token, rules.micro(now + busy_s)
        return True

    def end(self, number: int, token: str, report: dict[str, Any], now: float) -> bool:
        """No longer busy, if this tick still holds it. True: it is to run once more."""
        if (number, token) != (self.number, self.token):
            return False
        self.busy_until, self.report, self.reported_at = 0.0, dict(report), now
        return self.again

    def fresh_report(self, now: float) -> dict[str, Any]:
        """The last report, for as long as it is kept."""
        return dict(self.report) if now < self.reported_at + rules.REPORT_TTL_S else {}
