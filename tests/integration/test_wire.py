"""What may come over the wire: JSON, and tickets that mean something. Anything else harms nobody."""

from __future__ import annotations

import pickle
import uuid
from pathlib import Path
from typing import Any

import pytest
from kombu import Exchange, Queue

from callsheet import VideoJob, generate_video
from callsheet.app import app
from callsheet.beat.schedule import depth
from callsheet.client import Client
from callsheet.errors import JobCancelled
from callsheet.records.gpus import Gpu
from callsheet.records.states import State
from tests.support.live import Live, until

pytestmark = pytest.mark.torch

WAIT_S = 60.0
CAT = {"prompt": "a cat", "model": "tiny-wan", "steps": 2, "seed": 7}
QUEUE = "pro.a100"


class Bomb:
    """Unpickling it writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def publish(body: Any, *, serializer: str = "json", task: str = "callsheet.attempt", **headers: Any) -> None:
    """Put a message into our queue by hand."""
    task_id = str(uuid.uuid4())
    with app.connection_for_write() as connection, connection.Producer() as producer:
        producer.publish(
            body,
            serializer=serializer,
            exchange=Exchange(""),
            routing_key=QUEUE,
            declare=[Queue(QUEUE, routing_key=QUEUE)],
            headers={"lang": "py", "task": task, "id": task_id, "root_id": task_id, **headers},
            correlation_id=task_id,
        )


def waiting() -> int:
    """Messages in our queue."""
    return depth(QUEUE)


@pytest.fixture
def served(client: Client, live: Live) -> Gpu:
    """The worker that serves the queue."""
    return next(gpu for gpu in client.gpus() if QUEUE in gpu.queues)


def pids(live: Live) -> list[int]:
    return [process.pid for process in live.processes.values() if process.poll() is None]


def film() -> Any:
    return generate_video.delay(**CAT, tier="pro").get(timeout=WAIT_S)


def test_a_pickle_is_refused_and_the_worker_lives_on(served: Gpu, live: Live, tmp_path: Path) -> None:
    before, mark = pids(live), tmp_path / "run"
    publish([[Bomb(mark)], {}, {}], serializer="pickle")
    assert film()["seed"] == 7
    assert not mark.exists()
    assert pids(live) == before
    until(lambda: waiting() == 0, within_s=WAIT_S)


def test_a_result_that_is_a_pickle_is_not_loaded(client: Client, tmp_path: Path) -> None:
    job = generate_video.apply_async(kwargs=CAT, countdown=600)
    mark = tmp_path / "run"
    meta = {"status": "SUCCESS", "result": Bomb(mark), "task_id": job.id}
    app.backend.client.set(app.backend.get_key_for_task(job.id), pickle.dumps(meta))
    with pytest.raises(Exception, match=r".") as caught:
        job.get(timeout=5)
    assert "decode" in str(caught.value).lower() or "decode" in type(caught.value).__name__.lower()
    assert not mark.exists()
    app.backend.client.delete(app.backend.get_key_for_task(job.id))
    job.cancel()
    with pytest.raises(JobCancelled):
        job.get(timeout=WAIT_S)


MALFORMED = {
    "no arguments": [[], {}, {}],
    "too many": [["a", 1, QUEUE, 1, 2, 3], {}, {}],
    "unknown names": [[], {"film": "x"}, {}],
    "wrong types": [[None, "one", 7, []], {}, {}],
    "a nested id": [[{"a": 1}, 1, QUEUE, 1], {}, {}],
    "an id that is no key": [["x\u0000 y/*", 1, QUEUE, 1], {}, {}],
    "an unknown job": [["nobody", 1, QUEUE, 1], {}, {}],
    "a huge number": [["nobody", 10**30, QUEUE, 1], {}, {}],
    "no list at all": {"job": "x"},
    "an old protocol's": {
        "id": "x",
        "args": ["nobody", 1, QUEUE, 1],
        "kwargs": {},
        "task": "callsheet.attempt",
    },
    "two parts": [["nobody", 1, QUEUE, 1], {}],
    "other kinds": ["args", [], 3],
    "a word": "hello",
    "a number": 7,
    "nothing": None,
}


def test_malformed_tickets_are_dropped(served: Gpu, live: Live) -> None:
    before = pids(live)
    for body in MALFORMED.values():
        publish(body)
    publish([["x", 1, QUEUE, 1], {}, {}], task="callsheet.unknown")
    publish([["x", 1, QUEUE, 1], {}, {}], task="os.system")
    assert film()["seed"] == 7
    assert pids(live) == before
    until(lambda: waiting() == 0, within_s=WAIT_S, what="messages left")


@pytest.mark.parametrize("format_", [99, "1", None, 1.5])
def test_a_ticket_of_another_format_is_dropped_and_the_job_still_ends(
    served: Gpu, client: Client, format_: Any
) -> None:
    job = generate_video.apply_async(kwargs={**CAT, "tier": "pro"}, countdown=1)
    assert isinstance(job, VideoJob)
    publish([[job.id, 1, QUEUE, format_], {}, {}])
    assert job.get(timeout=WAIT_S)["seed"] == 7
    assert job.attempts == 1
    assert client.get(job.id).state is State.SUCCEEDED
