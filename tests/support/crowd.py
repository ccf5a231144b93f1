"""Many jobs at once, some of them running, while something is done to the servers under them."""

from __future__ import annotations

import time

from callsheet import VideoJob
from callsheet.errors import Unreachable
from callsheet.records.jobs import Job
from callsheet.records.states import State
from tests.support.live import until
from tests.support.theatre import WAIT_S, Theatre

SEEDS = 3  # different films among them


class Crowd:
    """``size`` jobs, submitted when it is made."""

    def __init__(self, theatre: Theatre, size: int = 16) -> None:
        self.theatre = theatre
        self.jobs: dict[str, tuple[VideoJob, int]] = {}
        for number in range(size):
            self.add(theatre.submit(seed=number % SEEDS), number % SEEDS)
        self.submitted_at = time.monotonic()

    def add(self, job: VideoJob, seed: int) -> None:
        """One more."""
        self.jobs[job.id] = (job, seed)

    def wait_under_load(self, *, age_s: float = 0.0) -> None:
        """Wait until one has ended, others run and others wait; ``age_s`` after the last submit at least."""

        def loaded() -> bool:
            if time.monotonic() - self.submitted_at < age_s:
                return False
            states = [record.state for record in self.records()]
            return states.count(State.RUNNING) > 0 and states.count(State.SUCCEEDED) > 0

        until(loaded, within_s=WAIT_S, what="a crowd under load")
        assert any(record.state in (State.PENDING, State.QUEUED) for record in self.records())

    def records(self) -> list[Job]:
        """Their records. Fails for a job that is lost."""
        found = self.theatre.store.get_many(list(self.jobs))
        assert all(found), (
            f"lost: {[name for name, job in zip(self.jobs, found, strict=True) if job is None]}"
        )
        return [job for job in found if job is not None]

    def ended(self) -> int:
        """How many have ended; 0 while the store is away."""
        try:
            return sum(record.ended for record in self.records())
        except Unreachable:
            return 0

    def time_until_next_end(self, before: int) -> float:
        """Seconds from now until one more has ended than ``before``."""
        began = time.monotonic()
        until(lambda: self.ended() > before, within_s=WAIT_S, what="jobs that go on")
        return time.monotonic() - began

    def check(self) -> list[Job]:
        """Each succeeds once, with its undisturbed film, and no worker was taken for dead."""
        records = [self.theatre.check_whole(job, seed=seed) for job, seed in self.jobs.values()]
        for record in records:
            kinds = [event.kind for event in self.theatre.store.events(record.id)]
            assert kinds.count("succeeded") == 1, kinds
            assert (record.crashes, record.restarts) == (0, 0), (record, kinds)
        return records
