"""The deployment that ``python -m benchmarks.preemption`` measures: default settings, marks, real steps."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.preemption_app import FOLDER
from benchmarks.preemption_marks import Mark, least_step_cpu_s, of_job, read_marks
from callsheet import VideoJob, generate_video, wiring
from callsheet.app import app
from callsheet.errors import JobFailed
from callsheet.records.jobs import Job
from callsheet.records.states import State
from callsheet.settings import Settings
from callsheet.store.protocol import Store
from tests.support.live import Live
from tests.support.valkey import Valkey

MARKED = "benchmarks.preemption_app"
MODEL = "tiny-ltx"
WAIT_S = 300.0
LEAST_STEP_CPU_S = 0.6  # half a second is asked for; a busy machine makes CPU seconds, too, a bit longer
SHAPES = tuple(
    (size, frames) for size in ("128x128", "192x128", "256x256") for frames in (41, 49, 57, 65, 73, 81)
)

#: The tiny model at sizes that give a step something to do; the built-in entry ends at 128x128.
CATALOG = """
["tiny-ltx"]
source = "{models_dir}/tiny-ltx"
dtype = "float32"
weights_gb = 0.003
denoise_gb = 0.5
decode_gb = 0.5
min_vram_gib = 4
size = "128x128"
sizes = ["64x64", "128x128", "192x128", "256x256"]
frames = 41
max_frames = 81
frame_stride = 4
fps = 8
max_fps = 30
steps = 8
max_steps = 1000
guidance = 5.0
max_guidance = 20.0
license = "Apache-2.0"
"""


def settings_of(folder: Path, broker_url: str, **changes: Any) -> Settings:
    """The defaults, but for where things lie, one thread of torch, and the catalog. Builds the model."""
    from callsheet.workers.tiny import build_tiny  # imports torch

    models, catalog = folder / "models", folder / "catalog.toml"
    catalog.write_text(CATALOG)
    build_tiny(MODEL, models)
    return Settings(
        data_dir=folder,
        broker_url=broker_url,
        models_dir=models,
        catalog=str(catalog),
        torch_threads=1,
        flower_port=0,
        **changes,
    )


class Stage(Live):
    """Two controllers, two beats and GPU workers, all of them marked. Use :func:`staged`."""

    @property
    def marks_dir(self) -> Path:
        """Where every process leaves its marks."""
        return self.folder / "marks"

    @property
    def store(self) -> Store:
        """The store of this process."""
        return wiring.store()

    def start(
        self, name: str, *argv: str, env: dict[str, str] | None = None, module: str = MARKED
    ) -> subprocess.Popen[bytes]:
        """As Live's, of the app with marks in place of the bare one."""
        marked = MARKED if module == "callsheet.app" else module
        return super().start(name, *argv, env={**(env or {}), FOLDER: str(self.marks_dir)}, module=marked)

    def submit(self, **arguments: Any) -> VideoJob:
        """One job of the tiny model."""
        job = generate_video.delay(prompt="a red balloon over the sea at dawn", model=MODEL, **arguments)
        assert isinstance(job, VideoJob)
        return job

    def ended(self, job: VideoJob) -> Job:
        """Its record when it has succeeded. Raises JobFailed."""
        record = job.wait_ended(WAIT_S, poll_s=0.05)
        if record.state is not State.SUCCEEDED:
            raise JobFailed(f"job {record.id} of the benchmark is {record.state}: {record.error}")
        return record

    def marks(self, job: str = "") -> list[Mark]:
        """So far, of one job or of all."""
        found = read_marks(self.marks_dir)
        return of_job(found, job) if job else found

    def forget_marks(self) -> None:
        """Begin anew, so that reading them stays cheap. Only while nothing runs."""
        for path in self.marks_dir.glob("*.marks"):
            path.write_text("")

    def shape(self) -> dict[str, Any]:
        """Size and frames of the smallest film whose steps are long enough on this machine.

        Raises JobFailed when none is.
        """
        for size, frames in SHAPES:
            job = self.submit(size=size, frames=frames, steps=3)
            self.ended(job)
            if least_step_cpu_s(self.marks(job.id)) >= LEAST_STEP_CPU_S:
                return {"size": size, "frames": frames}
        raise JobFailed(f"a step of the largest shape {SHAPES[-1]} is shorter than {LEAST_STEP_CPU_S} s here")

    def kill_node(self, name: str) -> None:
        """SIGKILL a worker's parent and child at once."""
        process = self.processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def staged(folder: Path, *workers: str) -> Iterator[Stage]:
    """Start all, on a Valkey with an append-only file, as in production; wait for the workers; stop them."""
    from benchmarks.deployment import SHORTENED  # imports torch

    with Valkey(aof=True) as valkey:
        settings = settings_of(folder, valkey.url)
        kept = {name: getattr(settings, name) for name in (*SHORTENED, "models_dir", "catalog")}
        with Stage(folder, valkey, **kept) as stage:
            stage.marks_dir.mkdir()
            app.use(stage.settings)
            for number in (1, 2):
                stage.controller(f"control-{number}")
            for name in workers:
                stage.worker(name, wait=False)
            for name in workers:
                stage.wait_for_gpu(f"{name}@test")
            yield stage


def manifest_of(job: Job) -> dict[str, Any]:
    """What is told beside its film."""
    found: dict[str, Any] = json.loads(Path(job.manifest.removeprefix("file://")).read_text())
    return found
