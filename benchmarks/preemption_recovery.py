"""How long a job waits for another worker when its own is killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.preemption_marks import steps_computed
from benchmarks.preemption_stage import WAIT_S, Stage, staged
from callsheet import VideoJob
from tests.support.live import until

STEPS = 100  # more than one that is killed in its first steps will make
KILLED_AFTER = 2  # steps


def measure(folder: Path, rounds: int, say: Callable[[str], None]) -> list[float]:
    """Seconds from kill -9 of a busy worker (parent and child) until an idle one has claimed its job."""
    with staged(folder, "a100-0", "a100-1") as stage:
        say(f"recovery: {rounds} kills")
        return list(_rounds(stage, rounds))


def _rounds(stage: Stage, rounds: int) -> Iterator[float]:
    for _ in range(rounds):
        stage.forget_marks()
        job = stage.submit(size="128x128", frames=41, steps=STEPS)
        yield _kill(stage, job)
        job.cancel()


def _kill(stage: Stage, job: VideoJob) -> float:
    """Kill its worker, see the job claimed by the other one, and start a new worker in its place."""
    until(lambda: steps_computed(stage.marks(job.id)) >= KILLED_AFTER, within_s=WAIT_S, what="its steps")
    busy = stage.store.get(job.id).worker
    name = busy.partition("@")[0]
    killed_at = time.time()
    stage.kill_node(name)
    claimed_at: float = until(lambda: _claimed(stage, job.id), within_s=WAIT_S, what=f"{job.id} is claimed")
    stage.worker(name, wait=False)
    until(lambda: _is_back(stage, busy, claimed_at), within_s=WAIT_S, what=f"{busy} is back")
    return claimed_at - killed_at


def _claimed(stage: Stage, job_id: str) -> float:
    """When its second attempt began (store time); 0 while it has not."""
    found = [event.at for event in stage.store.events(job_id) if event.kind == "claimed"]
    return found[1] if len(found) > 1 else 0.0


def _is_back(stage: Stage, name: str, since: float) -> bool:
    return any(gpu.name == name and gpu.queues and gpu.seen_at > since for gpu in stage.store.gpus())
