"""The keeper: the thread in a GPU worker's parent process that keeps the lease of what the child runs.

It renews each second, or sooner when a step was finished, carries orders to the child, keeps the GPU's
heartbeat, obeys what operators say about the GPU, and refills the queue that a claim emptied. A dead child's
job goes back at once; a child that does not obey is killed after its grace.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Spent
from callsheet.records.lanes import Desired
from callsheet.store.protocol import Store
from callsheet.workers.grace import Grace
from callsheet.workers.slate import LOADING, Running, Slate
from callsheet.workers.weights import WeightsOrder

log = logging.getLogger(__name__)

BUSY_LOOK_S = 0.05  # how often it looks for a finished step
IDLE_LOOK_S = 0.25  # how often it looks for a new claim
HEARTBEATS_PER_TTL = 5
#: A weaker order never replaces a stronger one.
RANK = {"": 0, "yield": 1, "drain": 2, "leave": 3, "cancel": 4, "fenced": 5}


class Watcher(Protocol):
    """Decides which queues this GPU serves."""

    queues: tuple[str, ...]

    def look(
        self, wish: Desired | None, resident: Collection[str], fleet: Callable[[], Iterable[Gpu]]
    ) -> None:
        """What is desired of it, and which weights it has; without a wish the live fleet decides."""
        ...

    def rest(self) -> None:
        """Serve nothing: there is no child that could work, or the GPU is cordoned."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """The settings that a keeper works by, seconds but for the last."""

    lease_s: float
    renew_s: float
    yield_grace_s: float = 20.0
    stuck_s: float = 900.0
    max_crashes: int = 3


@dataclass(frozen=True, slots=True)
class _Lost:
    """An attempt whose child is dead, until the store knows."""

    running: Running
    op: str
    reason: str
    ordered: bool  # it was killed because it did not yield


class Keeper:
    """A plain object: :meth:`look` does one round, so that a test drives it without a thread."""

    def __init__(
        self,
        store: Store,
        slate: Slate,
        gpu: Gpu,
        *,
        subscriber: Watcher,
        pace: Pace,
        refill: Callable[[str], object],
        load: Callable[[str], object] = lambda _lane: None,
        alive: Callable[[int], bool] | None = None,
        kill: Callable[[int], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._slate, self._gpu = store, slate, gpu
        self._subscriber, self._pace, self._refill, self._clock = subscriber, pace, refill, clock
        self._alive, self._kill = alive or process_lives, kill or kill_process
        self._weights = WeightsOrder(load)
        self._grace = Grace(pace.yield_grace_s, pace.stuck_s)
        self._renewed: tuple[float, Running] = (float("-inf"), Running())
        self._beat_at = float("-inf")
        self._lost: _Lost | None = None
        self._lost_token = ""
        self._killed: dict[str, str] = {}  # token -> why
        self._pen = threading.Lock()  # signals come in another thread, and the slate has one writer
        self._recorded = ""  # token of the attempt whose record held an order to yield
        self._leaving = False  # the worker ends
        self._draining = False  # an operator wants its job elsewhere

    def look(self) -> float:
        """One round. Answers after how many seconds the next one is due."""
        running = self._slate.read_running()
        warm = bool(running.pid) and self._alive(running.pid)
        busy = warm and bool(running.job_id)
        loading = warm and running.phase == LOADING
        if running.job_id and not warm:
            self._see_lost(running)
        self._tell_lost()
        self._beat(running if busy else _idle(running), warm)
        if busy:
            self._give_orders(running)
            self._renew(running)
        elif loading:
            self._see_stuck(running, "")
        return BUSY_LOOK_S if busy else IDLE_LOOK_S

    def tell(self, ticket_id: str, order: str) -> bool:
        """An order by signal, for a ticket's (or a job's) attempt. False: it does not run here."""
        running = self._slate.read_running()
        if not running.job_id or ticket_id not in (running.job_id, f"{running.job_id}.{running.ticket}"):
            return False
        self._order(running, order)
        return True

    def leave_soon(self) -> None:
        """The worker ends: what runs is handed back at its next step, also what begins just now."""
        self._leaving = True
        running = self._slate.read_running()
        if running.job_id:
            self._order(running, "leave")

    def leave(self) -> None:
        """The worker goes in order: its GPU is no longer listed."""
        self._store.drop_gpu(self._gpu.name)

    # -- what the child runs

    def _renew(self, running: Running) -> None:
        renewed_at, before = self._renewed
        now = self._clock()
        if running == before and now - renewed_at < self._pace.renew_s:
            return
        order = self._store.renew(
            running.job_id,
            running.attempt,
            running.token,
            lease_s=self._pace.lease_s,
            step=running.step,
            steps=running.steps,
            phase=running.phase,
            loading_s=running.loading_s,
            step_s=running.step_s,
            worker=self._gpu.name,
        )
        self._renewed = (now, running)
        if order:
            self._order(running, order)
        elif self._recorded == running.token or running.declined > before.declined:
            self._take_back(running)
        self._recorded = running.token if order == "yield" else ""
        if running.token != before.token:
            self._refill(running.queue)

    def _give_orders(self, running: Running) -> None:
        """What follows from here and not from the record; then see whether the child obeys."""
        if self._leaving or self._draining:
            self._order(running, "leave" if self._leaving else "drain")
        self._see_stuck(running, self._slate.read_order(running.token))

    def _see_stuck(self, running: Running, order: str) -> None:
        """A child that does not obey, or gets nowhere, is killed."""
        why = self._grace.overdue(running, order, self._clock())
        if why and running.token not in self._killed:
            doing = f"job {running.job_id}" if running.job_id else "loading weights"
            log.error("%s: the child %s is killed, since %s", doing, running.pid, why)
            self._killed = {running.token: why}
            self._kill(running.pid)

    def _order(self, running: Running, order: str) -> None:
        with self._pen:
            if RANK[order] > RANK[self._slate.read_order(running.token)]:
                self._slate.write_order(running.token, order)

    def _take_back(self, running: Running) -> None:
        """The record has no order to yield any more, or the child could not obey it."""
        with self._pen:
            if self._slate.read_order(running.token) == "yield":
                self._slate.write_order(running.token, "")

    # -- a child that died

    def _see_lost(self, running: Running) -> None:
        if running.token in (self._lost_token, self._lost.running.token if self._lost else ""):
            return
        why = self._killed.get(running.token, "")
        ordered = bool(why) and self._slate.read_order(running.token) in ("yield", "drain", "leave")
        self._lost = _Lost(
            running, uuid.uuid4().hex, f"its process died: {why}" if why else "its process died", ordered
        )

    def _tell_lost(self) -> None:
        """At once, instead of when the lease runs out; asked again, under one op, while the store is away."""
        lost = self._lost
        if lost is None:
            return
        fence = (lost.running.job_id, lost.running.attempt, lost.running.token)
        if lost.ordered:
            spent = Spent(loading=lost.running.loading_s)
            self._store.hand_back(*fence, reason=lost.reason, spent=spent, op=lost.op)
        else:
            self._store.lose(*fence, reason=lost.reason, max_crashes=self._pace.max_crashes, op=lost.op)
        self._lost, self._lost_token = None, lost.running.token

    # -- the GPU

    def _beat(self, running: Running, warm: bool) -> None:
        """The GPU is there only while its child is up and has torch loaded; cordoned it serves nothing."""
        now = self._clock()
        if not warm:
            self._subscriber.rest()
            return
        if now - self._beat_at < self._pace.renew_s:
            return
        if self._cordoned():
            self._subscriber.rest()
        else:
            wish = self._store.desired_of(self._gpu.name)
            self._subscriber.look(wish, running.resident, self._store.gpus)
            self._weights.look(wish, running, now)
        gpu = replace(
            self._gpu,
            job_id=running.job_id,
            step=running.step,
            steps=running.steps,
            resident=running.resident,
            build=running.build,
            queues=self._subscriber.queues,
        )
        self._store.beat_gpu(gpu, ttl_s=2 * HEARTBEATS_PER_TTL * self._pace.renew_s)
        self._beat_at = now

    def _cordoned(self) -> bool:
        """Whether an operator keeps new jobs away; notes whether the running one is to go too."""
        order = self._store.gpu_order(self._gpu.name)
        draining = order is not None and order.action == "draining" and order.give_up_at > 0
        self._draining = draining and order is not None and self._store.now() >= order.give_up_at
        return order is not None


def _idle(running: Running) -> Running:
    """What a child says that runs no job."""
    return Running(phase=running.phase, resident=running.resident, build=running.build)


def process_lives(pid: int) -> bool:
    """Whether a child process still works: gone and zombie count as dead."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return not Path("/proc/self").exists() and _signalable(pid)
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def kill_process(pid: int) -> None:
    """SIGKILL; a process that is gone already is fine."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _signalable(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
