"""A theatre for killing: three workers, a host that leads the chords; what is killed is started again.

The settings that decide how soon a loss is seen are the defaults of production.
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from celery import Celery, chord

from callsheet import generate_video
from callsheet.app import app
from callsheet.artifacts.films import film_folder
from callsheet.artifacts.objects import Objects
from callsheet.records.gpus import Gpu
from callsheet.records.states import State
from callsheet.settings import Settings
from tests.support.arena_app import STEPS_LOG
from tests.support.host_app import notes
from tests.support.hosting import task
from tests.support.live import READY_S, until
from tests.support.paced_app import GATES, PACE
from tests.support.theatre import CAT, WAIT_S, Theatre, children
from tests.support.valkey import Valkey

WORKERS = ("a100-0", "a100-1", "a100-2")
CONTROLLERS = ("control-1", "control-2")
BEATS = tuple(f"beat-{name}" for name in CONTROLLERS)
DEATH_S = 0.2  # a heartbeat so much later than a kill is not the dead one's

_default = Settings()
PRODUCTION = {name: getattr(_default, name) for name in ("lease_s", "renew_s", "tick_s", "heal_after_s")}


class Arena(Theatre):
    """Use as a context manager, then :meth:`open`, then set ``host``."""

    host: Celery

    def __init__(self, folder: Path, valkey: Valkey, **settings: Any) -> None:
        super().__init__(folder, valkey, **{"pace_s": 0.1, **PRODUCTION, **settings})
        self._killed_at: dict[str, float] = {}

    def paced_worker(self, name: str, gpu_class: str = "a100", env: dict[str, str] | None = None) -> None:
        """Start a GPU worker that also writes down its steps; does not wait."""
        paced = {PACE: str(self.pace_s), GATES: str(self.gates), **(env or {})}
        self.worker(name, gpu_class, wait=False, module="tests.support.arena_app", env=paced)

    # -- workers

    def ready(self) -> list[Gpu]:
        """GPUs whose worker and child live, as far as their heartbeats tell."""
        return [
            gpu
            for gpu in self.store.gpus()
            if gpu.queues and gpu.seen_at > self._killed_at.get(gpu.name.partition("@")[0], 0.0)
        ]

    def wait_ready(self, workers: int = len(WORKERS)) -> None:
        """Wait until so many workers are there."""
        until(lambda: len(self.ready()) >= workers, within_s=READY_S, what=f"{workers} workers")

    def busy(self) -> list[str]:
        """Workers that run a job."""
        return [job.worker.partition("@")[0] for job in self.store.running()]

    def worker_of(self, job_id: str) -> str:
        """Who runs a job."""
        return self.store.get(job_id).worker.partition("@")[0]

    def wait_attempt(self, job_id: str, number: int) -> None:
        """Wait until that attempt has begun."""
        until(lambda: self.store.get(job_id).attempt >= number, within_s=WAIT_S, what=f"attempt {number}")

    # -- jobs

    def film_chord(self, about: str, header: list[dict[str, Any]]) -> tuple[list[str], Any]:
        """A chord whose body is the host's note. Answers the films' job ids and the chord's result."""
        result = chord([generate_video.s(**{**CAT, **changes}) for changes in header])(
            task(self.host, "note", about=about)
        )
        return [member.id for member in result.parent.results], result

    def bodies(self, about: str) -> list[list[int]]:
        """The seeds that each call of the body got."""
        return [[film["seed"] for film in said] for _, said in notes(self.host, about)]

    def steps_computed(self) -> Counter[str]:
        """Job id -> steps that any attempt of it computed."""
        log = self.gates / STEPS_LOG
        return (
            Counter(line.split()[0] for line in log.read_text().splitlines()) if log.exists() else Counter()
        )

    def objects_of(self, job_id: str) -> list[str]:
        """Keys of everything in object storage that belongs to the job."""
        from callsheet import wiring

        objects: Objects = wiring.objects()
        folder = film_folder(job_id)
        return objects.list(folder) + objects.list(folder.replace("jobs/", "checkpoints/", 1))

    def check_quiet(self) -> None:
        """Nothing runs, waits or is undelivered."""
        until(lambda: not self.store.undelivered(), within_s=WAIT_S, what="everything delivered")
        active = (State.PENDING, State.HELD, State.QUEUED, State.RUNNING)
        assert not any(self.store.counts().get(state) for state in active)

    # -- harm

    def choose(self, kind: str, rng: random.Random) -> str:
        """What a kill of this kind hits: a worker at work, if there is one."""
        if kind == "controller":
            return rng.choice(CONTROLLERS)
        if kind == "beat":
            return rng.choice(BEATS)
        ready = [gpu.name.partition("@")[0] for gpu in self.ready()]
        return rng.choice(sorted(set(ready) & set(self.busy())) or ready)

    def harm(self, kind: str, name: str) -> float:
        """SIGKILL it, and start again what a supervisor would. Answers the store's time just before."""
        at = self.store.now()
        self._killed_at[name] = at + DEATH_S
        if kind == "child":
            os.kill(self.child_of(name), signal.SIGKILL)
            return at
        if kind == "node":
            self.kill_node(name)
        else:
            self.kill(name)
        if kind == "controller":
            self.control_worker(name)
        elif kind == "beat":
            self.beat(name)
        else:
            self.paced_worker(name)
        return at

    def kill_child(self, job_id: str) -> str:
        """SIGKILL the child that runs a job. Answers the worker's name."""
        name = self.worker_of(job_id)
        self.harm("child", name)
        (self.gates / f"{job_id}.at").unlink(missing_ok=True)
        return name

    def preempt(self, job_id: str) -> None:
        """The controllers' signal, for the ticket that runs."""
        job = self.store.get(job_id)
        app.control.revoke(job.ticket_id, terminate=True, signal="SIGUSR1", destination=[job.worker])

    def freeze(self, name: str) -> list[int]:
        """SIGSTOP a worker and its child. Answers their pids, for :meth:`thaw`."""
        parent = self.processes[name].pid
        pids = [parent, *children(parent)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        self._killed_at[name] = self.store.now() + DEATH_S
        return pids

    def thaw(self, pids: list[int]) -> None:
        """They go on where they were."""
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    def hold_beats(self) -> list[int]:
        """No ticks until :meth:`thaw` of the pids answered."""
        pids = [self.processes[name].pid for name in BEATS]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        return pids
