"""Where an attempt's time goes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from callsheet.records.jobs import Spent

MEASURED = 2  # steps after which their average tells how long the others take


@dataclass
class Clocks:
    """By the monotonic clock, in seconds. A worker has one GPU, so seconds are GPU-seconds."""

    claimed: float = field(default_factory=time.monotonic)
    first_step: float = 0.0  # when the first step that is computed here began
    steps: int = 0  # that were computed here
    loading_s: float = 0.0  # weights
    restoring_s: float = 0.0  # reading a checkpoint and replaying its steps

    def ran_s(self) -> float:
        """Seconds since the claim."""
        return time.monotonic() - self.claimed

    def steps_begin(self, *, resumed: bool) -> None:
        """The first step that is computed here begins."""
        self.first_step = time.monotonic()
        if resumed:
            self.restoring_s = self.first_step - self.claimed - self.loading_s

    def step_ended(self) -> None:
        """One more step was computed here. Replayed steps of a resumed job come before and do not count."""
        self.steps += 1

    def step_s(self) -> float:
        """Seconds that one step takes, on average; 0 until two of them were measured."""
        return (time.monotonic() - self.first_step) / self.steps if self.steps >= MEASURED else 0.0

    def useful_s(self) -> float:
        """Seconds so far that are neither loading nor restoring."""
        return max(self.ran_s() - self.loading_s - self.restoring_s, 0.0)

    def spent(self, kept_s: float) -> Spent:
        """GPU-seconds of an attempt of which ``kept_s`` are kept."""
        return Spent(kept_s, max(self.ran_s() - self.loading_s - kept_s, 0.0), self.loading_s)

    def timings(self) -> dict[str, float]:
        """For the manifest."""
        return {
            "load_s": round(self.loading_s, 6),
            "restore_s": round(self.restoring_s, 6),
            "claim_to_first_step_s": round(self.first_step - self.claimed, 6),
            "run_s": round(self.ran_s(), 6),
        }
