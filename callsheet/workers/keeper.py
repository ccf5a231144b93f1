"""The keeper: the thread in a GPU worker's parent process that keeps the lease of what the child runs.

It renews each second, or sooner when a step was finished, carries orders back to the child, keeps the GPU's
heartbeat, and refills the queue that a claim emptied. It stops renewing when the child is dead; it never
judges a slow one.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from callsheet.errors import CallsheetError, Unreachable
from callsheet.records.gpus import Gpu
from callsheet.store.protocol import Store
from callsheet.workers.slate import Running, Slate

log = logging.getLogger(__name__)

BUSY_LOOK_S = 0.05  # how often it looks for a finished step
IDLE_LOOK_S = 0.25  # how often it looks for a new claim
HEARTBEATS_PER_TTL = 5


class Watcher(Protocol):
    """Decides from the live fleet which queues this GPU serves."""

    queues: tuple[str, ...]

    def look(self, fleet: Iterable[Gpu]) -> None:
        """The fleet as it is now."""
        ...

    def rest(self) -> None:
        """Serve nothing: there is no child that could work."""
        ...


class Keeper:
    """A plain object: :meth:`look` does one round, so that a test drives it without a thread."""

    def __init__(
        self,
        store: Store,
        slate: Slate,
        gpu: Gpu,
        *,
        subscriber: Watcher,
        lease_s: float,
        renew_s: float,
        refill: Callable[[str], object],
        alive: Callable[[int], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._slate, self._gpu = store, slate, gpu
        self._subscriber, self._lease_s, self._renew_s = subscriber, lease_s, renew_s
        self._refill, self._alive, self._clock = refill, alive or process_lives, clock
        self._renewed: tuple[float, Running] = (float("-inf"), Running())
        self._beat_at = float("-inf")

    def look(self) -> float:
        """One round. Answers after how many seconds the next one is due."""
        running = self._slate.read_running()
        warm = bool(running.pid) and self._alive(running.pid)
        busy = warm and bool(running.job_id)
        self._beat(running if busy else Running(resident=running.resident), warm=warm)
        if busy:
            self._renew(running)
        return BUSY_LOOK_S if busy else IDLE_LOOK_S

    def leave(self) -> None:
        """The worker goes in order: its GPU is no longer listed."""
        self._store.drop_gpu(self._gpu.name)

    def _renew(self, running: Running) -> None:
        renewed_at, before = self._renewed
        now = self._clock()
        if running == before and now - renewed_at < self._renew_s:
            return
        order = self._store.renew(
            running.job_id,
            running.attempt,
            running.token,
            lease_s=self._lease_s,
            step=running.step,
            steps=running.steps,
            phase=running.phase,
        )
        self._renewed = (now, running)
        if order:
            self._slate.write_order(running.token, order)
        if running.token != before.token:
            self._refill(running.queue)

    def _beat(self, running: Running, *, warm: bool) -> None:
        """The GPU is there, and serves queues, only while its child is up and has torch loaded."""
        now = self._clock()
        if not warm:
            self._subscriber.rest()
            return
        if now - self._beat_at < self._renew_s:
            return
        self._subscriber.look(self._store.gpus())
        gpu = replace(
            self._gpu,
            job_id=running.job_id,
            step=running.step,
            steps=running.steps,
            resident=running.resident,
            queues=self._subscriber.queues,
        )
        self._store.beat_gpu(gpu, ttl_s=2 * HEARTBEATS_PER_TTL * self._renew_s)
        self._beat_at = now


class KeeperThread(threading.Thread):
    """Runs a keeper until it is told to stop.

    A store that is away is asked again; the job goes on meanwhile.
    """

    def __init__(self, keeper: Keeper, pause_s: float = 0.5) -> None:
        super().__init__(name="callsheet-keeper", daemon=True)
        self._keeper, self._pause_s = keeper, pause_s
        self._over = threading.Event()

    def run(self) -> None:
        """Look, wait, look."""
        away = False
        while not self._over.is_set():
            try:
                due_s = self._keeper.look()
                if away:
                    log.info("the store answers again")
                away = False
            except Unreachable as fault:
                if not away:
                    log.warning(
                        "%s; the running job goes on, its lease is renewed when the store is back", fault
                    )
                away, due_s = True, self._pause_s
            except CallsheetError:
                log.exception("the keeper's round failed")
                due_s = self._pause_s
            self._over.wait(due_s)

    def stop(self) -> None:
        """Stop and take the GPU off the list."""
        self._over.set()
        self.join(timeout=5.0)
        try:
            self._keeper.leave()
        except Unreachable:
            log.warning("the store is away: the GPU leaves the list when its heartbeat runs out")


def process_lives(pid: int) -> bool:
    """Whether a child process still works: gone and zombie count as dead."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return not Path("/proc/self").exists() and _signalable(pid)
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def _signalable(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
