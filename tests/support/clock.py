"""A clock that stands still until a test moves it."""

from __future__ import annotations


class Clock:
    """Hand it to a store as ``clock``."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
