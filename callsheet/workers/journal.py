"""Where an attempt says what it does, and hears its orders."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Protocol

from callsheet.store.protocol import Lease, Store
from callsheet.workers.slate import LOADING, Running, Slate


class Journal(Protocol):
    """One per worker child; one attempt at a time."""

    def begin(self, lease: Lease) -> None:
        """An attempt begins."""
        ...

    def step(self, done: int, total: int, step_s: float = 0.0) -> None:
        """Steps finished, of how many; seconds that one takes (0 = not measured yet)."""
        ...

    def phase(self, name: str) -> None:
        """What it does now: load, restore, encode, denoise, decode, store."""
        ...

    def loaded(self, loading_s: float, resident: tuple[str, ...]) -> None:
        """GPU-seconds spent loading so far, and the models that are loaded now."""
        ...

    def decline(self) -> None:
        """The order to yield cannot be obeyed."""
        ...

    def order(self) -> str:
        """The order for this attempt: "", yield, drain, leave, cancel or fenced."""
        ...

    def end(self, resident: tuple[str, ...]) -> None:
        """It has ended; these models stay loaded."""
        ...


class SlateJournal:
    """Over the slate to the parent's keeper: no network on the way of a step."""

    def __init__(self, slate: Slate, build: str = "") -> None:
        self._slate, self._build = slate, build
        self._now = Running()

    def begin(self, lease: Lease) -> None:
        """An attempt begins: from here on the keeper renews its lease."""
        job = lease.job
        self._say(
            Running(
                job_id=job.id,
                attempt=lease.attempt,
                token=lease.token,
                ticket=job.ticket,
                queue=job.queue,
                steps=job.request.steps,
                pid=os.getpid(),
                resident=self._now.resident,
                build=self._build,
            )
        )

    def step(self, done: int, total: int, step_s: float = 0.0) -> None:
        """Steps finished, of how many, and how fast."""
        self._say(replace(self._now, step=done, steps=total, step_s=step_s))

    def phase(self, name: str) -> None:
        """What it does now."""
        self._say(replace(self._now, phase=name))

    def loaded(self, loading_s: float, resident: tuple[str, ...]) -> None:
        """GPU-seconds spent loading so far, and what is loaded now."""
        self._say(replace(self._now, loading_s=loading_s, resident=resident))

    def load(self) -> None:
        """No attempt: weights are loaded for jobs to come."""
        self._say(Running(pid=os.getpid(), phase=LOADING, resident=self._now.resident, build=self._build))

    def decline(self) -> None:
        """The keeper takes the order back."""
        self._say(replace(self._now, declined=self._now.declined + 1))

    def order(self) -> str:
        """The order that the keeper wrote for this attempt."""
        return self._slate.read_order(self._now.token)

    def end(self, resident: tuple[str, ...]) -> None:
        """It has ended: the keeper stops renewing."""
        self._say(Running(pid=os.getpid(), resident=resident, build=self._build))

    def _say(self, running: Running) -> None:
        self._now = running
        self._slate.write_running(running)


class StoreJournal:
    """Straight into the store, for a job that runs in the caller's own process."""

    def __init__(self, store: Store, lease_s: float) -> None:
        self._store, self._lease_s = store, lease_s
        self._now = Running()
        self._order = ""

    def begin(self, lease: Lease) -> None:
        """An attempt begins."""
        self._order = ""
        steps = lease.job.request.steps
        self._now = Running(job_id=lease.job.id, attempt=lease.attempt, token=lease.token, steps=steps)

    def step(self, done: int, total: int, step_s: float = 0.0) -> None:
        """Steps finished, of how many, and how fast."""
        self._now = replace(self._now, step=done, steps=total, step_s=step_s)
        self._renew()

    def phase(self, name: str) -> None:
        """What it does now."""
        self._now = replace(self._now, phase=name)
        self._renew()

    def loaded(self, loading_s: float, resident: tuple[str, ...]) -> None:
        """GPU-seconds spent loading so far, and what is loaded now."""
        self._now = replace(self._now, loading_s=loading_s, resident=resident)

    def decline(self) -> None:
        """Unheard until the next renewal."""
        self._order = ""

    def order(self) -> str:
        """The order that came with the last renewal."""
        return self._order

    def end(self, resident: tuple[str, ...]) -> None:
        """It has ended."""
        self._now = Running(resident=resident)

    def _renew(self) -> None:
        now = self._now
        self._order = self._store.renew(
            now.job_id,
            now.attempt,
            now.token,
            lease_s=self._lease_s,
            step=now.step,
            steps=now.steps,
            phase=now.phase,
            loading_s=now.loading_s,
            step_s=now.step_s,
        )
