"""How long an idle, warm worker needs: from ``delay`` to the claim, and from the claim to the first step."""

from __future__ import annotations

import json
import time
from pathlib import Path

from benchmarks.deployment import Deployment
from benchmarks.figures import in_ms, median, ratio
from callsheet import VideoJob, generate_video
from callsheet.errors import JobFailed
from callsheet.records.jobs import Job
from callsheet.records.states import State

JOB = {"prompt": "a red balloon over the sea at dawn", "steps": 2, "frames": 5}
MODEL = "tiny-ltx"
#: Its text encoder pads every prompt to 512 tokens, and again for the negative one: that alone takes longer
#: on a CPU than all else before the first step, so its figure is told apart.
SLOW_ENCODER = "tiny-wan"
SLOW_JOBS = 10
REST_S = 0.1  # after each job, so that the next one finds an idle worker
WAIT_S = 120.0


def measure(deployment: Deployment, *, jobs: int) -> dict[str, float]:
    """Warm up, then ``jobs`` one after another, each followed by a task of the plain worker."""
    for model in (SLOW_ENCODER, MODEL):
        _run_job(model)
    deployment.stamp()
    dispatched, first_step, plain_dispatched = [], [], []
    for _ in range(jobs):
        sent_at, job = _run_job(MODEL)
        dispatched.append(job.claimed_at - sent_at)
        first_step.append(_claim_to_first_step_s(job))
        time.sleep(REST_S)
        sent_at = time.time()
        plain_dispatched.append(deployment.stamp() - sent_at)
        time.sleep(REST_S)
    slow = [_claim_to_first_step_s(_run_job(SLOW_ENCODER)[1]) for _ in range(SLOW_JOBS)]
    return {
        **in_ms("claim_to_first_step", first_step),
        "claim_to_first_step_ms_p50_tiny_wan": 1000 * median(slow),
        **in_ms("dispatch", dispatched),
        **in_ms("celery_dispatch", plain_dispatched),
        "dispatch_vs_celery": ratio(median(dispatched), median(plain_dispatched)),
    }


def _run_job(model: str) -> tuple[float, Job]:
    """When it was sent, and its record after its end. Raises JobFailed."""
    sent_at = time.time()  # the server's clock, too: it runs on this machine
    face = generate_video.delay(**JOB, model=model)
    assert isinstance(face, VideoJob)
    job = face.wait_ended(WAIT_S, poll_s=0.05)
    if job.state is not State.SUCCEEDED:
        raise JobFailed(f"job {job.id} of the benchmark is {job.state}: {job.error}")
    return sent_at, job


def _claim_to_first_step_s(job: Job) -> float:
    manifest = json.loads(Path(job.manifest.removeprefix("file://")).read_text())
    return float(manifest["timings"]["claim_to_first_step_s"])
