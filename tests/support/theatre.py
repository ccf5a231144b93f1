"""A live deployment whose jobs can be stopped at any step, and whose parts can be killed.

Two controllers and two beats, as in production; workers with a pace and gates (``paced_app.py``).
"""

from __future__ import annotations

import os
import signal
import uuid
from pathlib import Path
from typing import Any

from callsheet import VideoJob, generate_video
from callsheet.app import app
from callsheet.records.jobs import Job
from callsheet.records.states import State
from tests.support.live import Live, until
from tests.support.paced_app import GATES, PACE
from tests.support.valkey import Valkey

WAIT_S = 90.0
CAT = {"prompt": "a cat walks on the grass", "model": "tiny-wan", "steps": 4, "seed": 7, "frames": 5}


class Theatre(Live):
    """Use as a context manager, then :meth:`open`."""

    def __init__(self, folder: Path, valkey: Valkey, *, pace_s: float = 0.0, **settings: Any) -> None:
        super().__init__(folder, valkey, **settings)
        self.pace_s = pace_s
        self.gates = folder / "gates"
        self.gates.mkdir()
        self._films: dict[str, str] = {}

    def open(self, *workers: str, gpu_class: str = "a100", controllers: int = 2) -> None:
        """Start everything and wait for the workers."""
        self.use()
        for number in range(1, controllers + 1):
            self.controller(f"control-{number}")
        for name in workers:
            self.paced_worker(name, gpu_class)
        for name in workers:
            self.wait_for_gpu(f"{name}@test")

    def paced_worker(self, name: str, gpu_class: str = "a100") -> None:
        """Start a GPU worker with pace and gates; does not wait."""
        env = {PACE: str(self.pace_s), GATES: str(self.gates)}
        self.worker(name, gpu_class, wait=False, module="tests.support.paced_app", env=env)

    def use(self) -> None:
        """This process is a client of this deployment from now on."""
        app.use(self.settings)

    # -- jobs

    def submit(self, **changes: Any) -> VideoJob:
        """A small job."""
        job = generate_video.delay(**{**CAT, **changes})
        assert isinstance(job, VideoJob)
        return job

    def stopped_at(self, *places: str, **changes: Any) -> VideoJob:
        """A job that stands at the first of some gates: ``step 3``, ``phase decode``."""
        job_id = str(uuid.uuid4())
        (self.gates / job_id).write_text("\n".join(places))
        generate_video.apply_async(kwargs={**CAT, **changes}, task_id=job_id)
        self.wait_at(job_id, places[0])
        return generate_video.AsyncResult(job_id)

    def open_gate(self, job_id: str) -> None:
        """It goes on."""
        (self.gates / job_id).unlink(missing_ok=True)

    def wait_at(self, job_id: str, place: str) -> Job:
        """Wait until it stands there."""
        sign = self.gates / f"{job_id}.at"
        until(
            lambda: sign.exists() and sign.read_text() == place,
            within_s=WAIT_S,
            what=f"job {job_id} at {place}: {self.store.get(job_id)}",
        )
        return self.store.get(job_id)

    def record(self, job: VideoJob) -> Job:
        """Its record."""
        return self.store.get(job.id)

    def undisturbed(self, **changes: Any) -> str:
        """Hash of the frames of the same job, undisturbed; rendered once, in this process."""
        from tests.support.undisturbed import frames_hash

        wanted = {**CAT, **changes}
        key = repr(sorted(wanted.items()))
        if key not in self._films:
            self._films[key] = frames_hash(wanted, self.settings.models_dir)
        return self._films[key]

    def check_whole(self, job: VideoJob, **changes: Any) -> Job:
        """It succeeds with the undisturbed film, exact and delivered once. Answers the record."""
        result = job.get(timeout=WAIT_S)
        record = until(lambda: self._delivered(job), within_s=WAIT_S, what=f"{job.id} delivered")
        assert record.state is State.SUCCEEDED
        assert result["frames_sha256"] == record.frames_sha256 == self.undisturbed(**changes)
        assert record.exact
        found: Job = record
        return found

    def _delivered(self, job: VideoJob) -> Job | None:
        record = self.record(job)
        return record if record.delivered else None

    # -- harm

    def child_of(self, name: str) -> int:
        """Pid of a worker's pool child."""
        parent = self.processes[name].pid
        found: int = until(lambda: next(iter(children(parent)), 0), what=f"child of {name}")
        return found

    def stop_child(self, pid: int) -> None:
        """SIGSTOP a child: it hears no order; only SIGKILL ends it."""
        os.kill(pid, signal.SIGSTOP)

    def kill(self, name: str) -> None:
        """SIGKILL one process (a GPU worker's parent; its child goes with it or not, as it may)."""
        process = self.processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait(20)

    def kill_node(self, name: str) -> None:
        """SIGKILL a worker and its child at once."""
        process = self.processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)


def children(pid: int) -> list[int]:
    """Pids of a process's living children."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]
