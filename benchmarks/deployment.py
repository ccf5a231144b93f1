"""One GPU worker with the default settings, and one plain Celery worker beside it on the same server."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis

from benchmarks import plain
from callsheet.app import app
from callsheet.beat import schedule
from callsheet.beat.rebalancer import rebalance_all
from callsheet.settings import Settings
from callsheet.workers.tiny import build_tiny
from tests.support.live import READY_S, Live
from tests.support.valkey import Valkey

MODELS = ("tiny-ltx", "tiny-wan")
SHORTENED = ("lease_s", "renew_s", "tick_s", "heal_after_s")  # by Live, for tests


@dataclass
class Deployment:
    """Two idle workers: ours (as ``live``) and a plain one."""

    live: Live
    plain_client: redis.Redis  # of the plain worker's database
    ours_pid: int
    plain_pid: int

    def stamp(self) -> float:
        """Let the plain worker run one task; answers when its body began, in seconds since the epoch."""
        key = f"stamp:{uuid.uuid4()}"
        plain.stamp.delay(key)
        answer = self.plain_client.blpop([key], timeout=READY_S)
        if not answer:
            raise RuntimeError(f"the plain worker did not run a task within {READY_S:g} s")
        return float(answer[1])


@contextmanager
def deployed(folder: Path) -> Iterator[Deployment]:
    """Start both, wait until they are ready, and stop them at the end."""
    models = folder / "models"
    for model in MODELS:
        build_tiny(model, models)
    defaults = Settings(data_dir=folder)
    kept = {name: getattr(defaults, name) for name in SHORTENED}
    with Valkey() as valkey, Live(folder, valkey, models_dir=models, **kept) as live:
        app.use(live.settings)
        url = f"{valkey.url.rpartition('/')[0]}/1"  # another database: the workers do not hear each other
        plain.use(url)
        live.worker(wait=False)
        with _plain_worker(folder, url) as plain_pid:
            live.wait_for_gpu("a100-0@test")
            _rebalance()
            client = redis.Redis.from_url(url)
            yield Deployment(live, client, live.processes["a100-0"].pid, plain_pid)
            client.close()


def _rebalance() -> None:
    """What a controller does each second; once here, so that nothing else runs."""
    rebalance_all(schedule.hands())


@contextmanager
def _plain_worker(folder: Path, url: str) -> Iterator[int]:
    """Plain Celery with the flags that ours is started with."""
    argv = (sys.executable, "-m", "celery", "-A", "benchmarks.plain", "worker", "--pool", "prefork")
    flags = ("--concurrency", "1", "--hostname", "plain@test", "--without-gossip", "--without-mingle")
    with (folder / "plain.log").open("ab") as log:
        process = subprocess.Popen(
            [*argv, *flags],
            env={**os.environ, plain.URL_VARIABLE: url},
            cwd=Path(__file__).resolve().parents[1],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(20)
