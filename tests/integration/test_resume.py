"""An attempt that begins where another ended, in one process on a real tiny pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from callsheet.records.jobs import Job
from callsheet.records.states import State
from callsheet.workers.replay import belonging as facts
from tests.integration.test_perform import Stage
from tests.support.jobs import kinds, op
from tests.support.tiny import tiny_folder

pytestmark = pytest.mark.torch


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "tiny-wan").symlink_to(tiny_folder("tiny-wan"))
    return Stage(tmp_path, folder, checkpoint_interval_s=0.001)


def undisturbed(stage: Stage) -> str:
    return stage.run(stage.job())[1].frames_sha256


def preempted(stage: Stage, step: int = 2, **changes: object) -> Job:
    """A job that was preempted after a step."""
    ticket = stage.job(**changes)
    stage.journal.at[step] = lambda: stage.store.order(ticket.job_id, 1, "yield", reason="test", op=op())
    stage.run(ticket)
    return stage.store.get(ticket.job_id)


def again(stage: Stage, job: Job) -> Job:
    """Its next attempt."""
    (ticket,) = stage.store.release(job.queue, op=op())
    return stage.run(ticket)[1]


def other_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the build is another one."""
    build = facts.__globals__["_build"]
    monkeypatch.setitem(facts.__globals__, "_build", lambda device: {**build(device), "torch": "other"})


def test_a_crash_resumes_from_the_last_background_save(stage: Stage) -> None:
    whole = undisturbed(stage)
    ticket = stage.job(steps=4)

    def crash() -> None:
        stage.clock.advance(10)
        stage.store.reap(max_crashes=3, lease_s=3, gap_s=1e9, op=op())
        raise KeyboardInterrupt

    stage.journal.at[4] = crash
    with pytest.raises(KeyboardInterrupt):
        stage.performer.perform(ticket)
    kept = stage.store.get(ticket.job_id)
    assert kept.state is State.PENDING
    assert kept.checkpoint is not None
    assert 1 <= kept.checkpoint.step <= 3
    done = again(stage, kept)
    assert (done.frames_sha256, done.from_step, done.crashes) == (whole, kept.checkpoint.step, 1)


def test_another_build_resumes_and_the_record_says_that_it_is_not_exact(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = preempted(stage)
    other_machine(monkeypatch)
    done = again(stage, job)
    assert (done.state, done.from_step, done.exact) == (State.SUCCEEDED, 2, False)
    resumed = next(event for event in stage.store.events(job.id) if event.kind == "resumed")
    assert "not exact: torch" in resumed.reason


def test_a_strict_job_is_parked_for_its_build(stage: Stage) -> None:
    job = preempted(stage, reproducible="strict")
    assert (job.state, job.build) == (State.HELD, stage.performer._build)


def test_a_strict_job_begins_anew_rather_than_differ(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its build is the same by name, yet a fact beside it differs: the film must be exact."""
    job = preempted(stage, reproducible="strict")
    other_machine(monkeypatch)
    ticket = stage.store.assign(job.id, "direct.h100-0@test", reason="test", op=op())
    assert ticket is not None
    done = stage.run(ticket)[1]
    assert (done.state, done.from_step, done.exact, done.restarts) == (State.SUCCEEDED, 0, True, 1)


def test_another_model_begins_anew_and_says_why(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    job = preempted(stage)
    model = facts.__globals__["_model"]
    monkeypatch.setitem(facts.__globals__, "_model", lambda pipeline: {**model(pipeline), "model": "other"})
    done = again(stage, job)
    assert (done.state, done.from_step, done.restarts) == (State.SUCCEEDED, 0, 1)
    assert done.gpu_s_wasted >= job.gpu_s_useful
    reason = next(event.reason for event in stage.store.events(job.id) if event.kind == "restarted")
    assert "model" in reason


def test_what_each_attempt_cost_is_kept_and_sums_up(stage: Stage) -> None:
    job = preempted(stage)
    done = again(stage, job)
    first, second = stage.store.attempts(job.id)
    assert (first.end, first.from_step, first.to_step) == ("handed-back", 0, 2)
    assert (second.end, second.from_step, second.to_step) == ("succeeded", 2, 4)
    for kind in ("useful", "wasted", "loading"):
        total = getattr(first.spent, kind) + getattr(second.spent, kind)
        assert getattr(done, f"gpu_s_{kind}") == pytest.approx(total, abs=1e-5)
    assert first.spent.useful > 0
    assert second.spent.useful > 0
    assert kinds(stage.store, job.id)[-3:] == ["claimed", "resumed", "succeeded"]


def test_no_checkpoint_outlives_a_success(stage: Stage) -> None:
    job = preempted(stage)
    again(stage, job)
    from tests.support.live import until

    until(lambda: not stage.objects.list("checkpoints"))
