"""A live deployment for tests: a real Valkey, real Celery GPU workers with declared GPUs, a real controller
and beat.

Every process is started with its own log file, which is shown when something does not come up, and is
stopped by its pid.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from callsheet.records.gpus import Gpu
from callsheet.routing.classes import KNOWN
from callsheet.settings import Settings, to_env
from callsheet.store import open_store
from callsheet.store.protocol import Store
from tests.support.valkey import Valkey

READY_S = 90.0  # torch takes its time on a busy machine
STOP_S = 20.0


def until(condition: Callable[[], Any], *, within_s: float = 30.0, what: str = "") -> Any:
    """Wait until ``condition`` answers something true, and answer that.

    Raises AssertionError after ``within_s``.
    """
    ends = time.monotonic() + within_s
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > ends:
            raise AssertionError(f"not within {within_s} s: {what or condition}")
        time.sleep(0.02)


class Live:
    """One deployment in a folder. Use as a context manager."""

    def __init__(self, folder: Path, valkey: Valkey, **settings: Any) -> None:
        self.folder, self.valkey = folder, valkey
        self.settings = Settings(
            data_dir=folder,
            **{
                "broker_url": valkey.url,
                "torch_threads": 1,
                "tick_s": 0.4,  # sooner costs more CPU time than it saves: all beats and controllers tick
                "lease_s": 2.0,
                "renew_s": 0.3,
                "heal_after_s": 1.0,
                "flower_port": 0,
                **settings,
            },
        )
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():  # all at once: each takes seconds to leave in order
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for name in reversed(list(self.processes)):
            self.stop(name, signal.SIGCONT)  # one that a test has frozen hears of it now

    @property
    def store(self) -> Store:
        """A store of the test's own."""
        return open_store(self.settings.store_url, retention_s=self.settings.retention_s)

    def start(
        self, name: str, *argv: str, env: dict[str, str] | None = None, module: str = "callsheet.app"
    ) -> subprocess.Popen[bytes]:
        """Start ``python -m celery -A callsheet.app ...`` under a name (of another app with ``module``)."""
        command = [sys.executable, "-m", "celery", "-A", module, *argv]
        environment = {**os.environ, **to_env(self.settings), "OMP_NUM_THREADS": "1", **(env or {})}
        with self.log(name).open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self.processes[name]

    def worker(
        self,
        name: str = "a100-0",
        gpu_class: str = "a100",
        *,
        wait: bool = True,
        module: str = "callsheet.app",
        env: dict[str, str] | None = None,
    ) -> Gpu:
        """A GPU worker with a declared GPU; waits until it is registered."""
        vram = KNOWN[gpu_class].vram_gib
        full = f"{name}@test"
        gpu = {"name": full, "gpu_class": gpu_class, "vram_gib": vram, "uuid": "declared-0", "host": "test"}
        self.start(
            name,
            "worker",
            *("--pool", "prefork", "--concurrency", "1", "--hostname", full),
            *("--without-gossip", "--without-mingle", "--loglevel", "INFO"),
            env={"CALLSHEET_GPU": json.dumps({**gpu, "index": 0, "declared": True}), **(env or {})},
            module=module,
        )
        return self.wait_for_gpu(full) if wait else Gpu(full, gpu_class, vram, "declared-0", "test", 0)

    def wait_for_gpu(self, full: str) -> Gpu:
        """Wait until the worker is registered."""
        name = full.partition("@")[0]

        def listed() -> Gpu | None:
            process = self.processes.get(name)
            assert process is None or process.poll() is None, f"worker {full} ended\n{self.tail(name)}"
            return next((gpu for gpu in self.store.gpus() if gpu.name == full and gpu.queues), None)

        found: Gpu = until(
            listed,
            within_s=READY_S,
            what=f"worker {full}\n{self.tail(full.partition('@')[0])}",
        )
        return found

    def controller(self, name: str = "control-1") -> None:
        """A controller worker and a beat."""
        self.control_worker(name)
        self.beat(f"beat-{name}")

    def control_worker(self, name: str, env: dict[str, str] | None = None) -> None:
        """A controller worker alone."""
        self.start(
            name,
            "worker",
            *("--pool", "solo", "--queues", "callsheet.control", "--hostname", f"{name}@test"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"),
            env=env,
        )

    def beat(self, name: str, env: dict[str, str] | None = None) -> None:
        """A beat alone."""
        self.start(
            name,
            "beat",
            *("--schedule", str(self.folder / f"{name}.db"), "--pidfile=", "--loglevel", "INFO"),
            env=env,
        )

    def stop(self, name: str, sig: signal.Signals = signal.SIGTERM) -> None:
        """Stop one process and wait for its end; SIGKILL after a grace."""
        process = self.processes.pop(name)
        if process.poll() is None:
            process.send_signal(sig)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(STOP_S)

    def log(self, name: str) -> Path:
        """Where a process writes."""
        return self.folder / f"{name}.log"

    def tail(self, name: str, lines: int = 30) -> str:
        """The end of a process's log."""
        log = self.log(name)
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""
