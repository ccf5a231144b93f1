"""Workers that are told to go: by SIGTERM, and by an operator who drains their GPU."""

from __future__ import annotations

import signal
import time
import uuid

import pytest

from callsheet import generate_video
from callsheet.client import Client
from callsheet.records.states import ACTIVE
from tests.support.live import until
from tests.support.theatre import Theatre

pytestmark = [pytest.mark.torch, pytest.mark.chaos]


def short(worker: str) -> str:
    """The name of its process in the theatre."""
    return worker.partition("@")[0]


def test_a_worker_that_gets_sigterm_saves_hands_back_and_leaves_in_time(theatre: Theatre) -> None:
    job = theatre.stopped_at("step 2")
    name = short(theatre.record(job).worker)
    process, began = theatre.processes[name], time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.wait(theatre.settings.shutdown_grace_s)
    took_s = time.monotonic() - began
    del theatre.processes[name]
    record = theatre.check_whole(job)
    assert (record.from_step, record.preemptions, record.crashes) == (2, 0, 0)
    first = theatre.store.attempts(job.id)[0]
    assert (first.end, first.to_step) == ("handed-back", 2)
    assert record.worker != first.worker
    print(f"left within {took_s:.1f} s of SIGTERM")
    theatre.paced_worker(name)
    theatre.wait_for_gpu(f"{name}@test")


@pytest.mark.parametrize("within_s", [0.0, 2.0])
def test_a_drained_gpu_gives_its_job_up_and_takes_nothing_until_it_is_uncordoned(
    theatre: Theatre, within_s: float
) -> None:
    job = theatre.stopped_at("step 1")
    drained = theatre.record(job).worker
    door = Client()
    ordered_at = theatre.store.now()
    door.drain(drained, why="a fan is loud", who="ann@desk", within_s=within_s)
    record = theatre.check_whole(job)
    assert (record.from_step, record.crashes) == (1, 0)
    handed = [event.reason for event in theatre.store.events(job.id) if event.kind == "handed-back"]
    assert handed == ["its GPU is drained (a fan is loud, by ann@desk), at step 1"]
    assert theatre.store.attempts(job.id)[0].ended_at >= ordered_at + within_s
    assert record.worker != drained
    others = [theatre.submit(seed=seed) for seed in range(4)]
    assert {theatre.check_whole(one, seed=seed).worker for seed, one in enumerate(others)} == {record.worker}
    order = theatre.store.gpu_orders()[drained]
    assert (order.action, order.who, order.why) == ("draining", "ann@desk", "a fan is loud")
    door.uncordon(drained)
    until(lambda: any(gpu.name == drained and gpu.queues for gpu in theatre.store.gpus()))


def test_what_waits_is_not_passed_round_while_workers_hear_of_a_drain(theatre: Theatre) -> None:
    """Both GPUs at once, and they heard of it last: nobody is there to take what comes back to the queue."""
    held = [theatre.stopped_at("step 1", seed=seed) for seed in range(2)]
    waiting = [theatre.submit(seed=seed) for seed in range(2, 5)]
    drained = {theatre.record(job).worker for job in held}
    door = Client()
    for name in drained:
        door.drain(name, why="test", who="ann", within_s=0.0)
    until(lambda: not any(gpu.queues for gpu in theatre.store.gpus()))
    until(lambda: not theatre.store.running())
    for name in drained:
        door.uncordon(name)
    for seed, job in enumerate([*held, *waiting]):
        record = theatre.check_whole(job, seed=seed)
        kinds = [event.kind for event in theatre.store.events(job.id)]
        assert kinds[0] == "submitted"
        assert kinds.count("returned") <= len(drained)
        assert record.ticket <= 2 + len(drained)


def test_a_cordoned_gpu_finishes_its_job(theatre: Theatre) -> None:
    job = theatre.stopped_at("step 1")
    worker = theatre.record(job).worker
    door = Client()
    door.cordon(worker, why="test", who="ann")
    until(lambda: any(gpu.name == worker and not gpu.queues for gpu in theatre.store.gpus()))
    theatre.open_gate(job.id)
    record = theatre.check_whole(job)
    assert (record.worker, record.attempt) == (worker, 1)
    door.uncordon(worker)
    until(lambda: any(gpu.name == worker and gpu.queues for gpu in theatre.store.gpus()))


def test_a_cancelled_job_is_made_again_from_its_checkpoint(theatre: Theatre) -> None:
    job = theatre.stopped_at("step 2", "step 3")
    held = theatre.record(job)
    theatre.store.order(job.id, held.attempt, "yield", reason="test", op=uuid.uuid4().hex)
    theatre.wait_at(job.id, "step 3")
    job.cancel("changed my mind")
    until(lambda: theatre.record(job).delivered)
    state = Client().requeue(job.id, from_checkpoint=True, reason="changed it again", who="ann")
    assert state in ACTIVE
    record = theatre.check_whole(generate_video.AsyncResult(job.id))  # the old handle remembers the old end
    assert (record.from_step, record.attempt) == (2, 3)


def test_a_job_waits_as_long_for_the_next_step_as_the_grace_allows(theatre: Theatre) -> None:
    """A child that hears nothing (it stands at a gate without looking) is killed, and its job goes on."""
    job = theatre.stopped_at("step 2", "step 3")
    held = theatre.record(job)
    theatre.store.order(job.id, held.attempt, "yield", reason="test", op=uuid.uuid4().hex)
    theatre.wait_at(job.id, "step 3")
    child = theatre.child_of(short(theatre.record(job).worker))
    theatre.stop_child(child)
    theatre.store.order(job.id, theatre.record(job).attempt, "yield", reason="test", op=uuid.uuid4().hex)
    theatre.open_gate(job.id)
    record = theatre.check_whole(job)
    assert (record.from_step, record.crashes, record.preemptions) == (2, 0, 2)
    events = [event.reason for event in theatre.store.events(job.id) if event.kind == "handed-back"]
    assert "did not obey" in events[-1]
