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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Spent
from callsheet.store.protocol import Store
from callsheet.workers.grace import Grace
from callsheet.workers.slate import Running, Slate

log = logging.getLogger(__name__)

BUSY_LOOK_S = 0.05  # how often it looks for a finished step
IDLE_LOOK_S = 0.25  # how often it looks for a new claim
HEARTBEATS_PER_TTL = 5
RANK = {"": 0, "yield": 1, "drain": 2, "leave": 3, "cancel": 4, "fenced": 5}
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
            self._subscriber.look(self._store.gpus())
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
