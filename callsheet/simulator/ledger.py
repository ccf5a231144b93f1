"""What a run counts while it goes: lives of jobs, GPU-seconds inside the window."""

from __future__ import annotations

from collections import defaultdict

from callsheet.simulator.result import Life, Result, Sample
from callsheet.simulator.scenario import Scenario


class Ledger:
    """One run's sums."""

    def __init__(self, scenario: Scenario) -> None:
        self.window_s = scenario.window_s
        self.lives = [Life(arrival) for arrival in scenario.arrivals]
        self.gpu_s: defaultdict[str, float] = defaultdict(float)
        self.loads = 0
        self.preemptions = 0
        self.ended = 0

    def spent(self, kind: str, begin_s: float, end_s: float) -> float:
        """GPU-seconds of a kind from begin to end; only those inside the window count. Answers these."""
        inside = max(min(end_s, self.window_s) - max(begin_s, 0.0), 0.0)
        self.gpu_s[kind] += inside
        return inside

    def loaded(self, begin_s: float, end_s: float) -> None:
        """One load of weights."""
        self.spent("loading", begin_s, end_s)
        self.loads += begin_s < self.window_s

    def worked(self, life: Life, begin_s: float, end_s: float, speed: float) -> None:
        """Useful work on a job."""
        life.done_s += self.spent("useful", begin_s, end_s) * speed

    def refuse(self, life: Life) -> None:
        """A job was not admitted: nothing more comes of it."""
        life.refused = True
        self.ended += 1

    def end(self, life: Life, at_s: float) -> None:
        """A job is done."""
        life.ended_at = at_s
        self.ended += 1

    def fail(self, life: Life, at_s: float) -> None:
        """A job ended without a film."""
        life.failed = True
        self.end(life, at_s)

    def result(self, policy: str, samples: list[Sample], *, gpus: int, moved_queues: int = 0) -> Result:
        """The run as it went, on so many GPUs; what was not used of the window was idle."""
        gpu_s = {kind: self.gpu_s[kind] for kind in ("useful", "loading", "wasted")}
        return Result(
            policy=policy,
            lives=self.lives,
            gpu_s=gpu_s | {"idle": gpus * self.window_s - sum(gpu_s.values())},
            loads=self.loads,
            preemptions=self.preemptions,
            moved_queues=moved_queues,
            samples=samples,
            ended_s=max((life.ended_at or 0.0 for life in self.lives), default=0.0),
        )
