"""An old and a newer version of the worker, side by side on one queue: each runs what it can read.

The old one is the code as it is; the newer one is the same code with other numbers (``newer_app.py``).
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callsheet import VideoJob, generate_video
from callsheet.app import app
from callsheet.records.jobs import CHECKPOINT_FORMAT, FORMAT, Checkpoint, Job, Ticket
from callsheet.records.states import State
from callsheet.store.keys import Keys
from callsheet.store.protocol import Lease
from callsheet.tasks.ticket import PASS_ON_S
from tests.support.live import Live, until
from tests.support.quick_worker import QUEUE, serve
from tests.support.valkey import Valkey

WAIT_S = 60.0
OLD, NEW = "tests.support.quick_worker", "tests.support.newer_app"


class Fleet:
    """A deployment with controllers, and at first one old worker."""

    def __init__(self, live: Live) -> None:
        self.live, self.store = live, live.store
        live.controller()
        serve(self.store, ttl_s=3600)

    def worker(self, name: str, module: str) -> None:
        """Start one of a version."""
        self.live.start(
            name,
            *("worker", "--pool", "solo", "--queues", QUEUE, "--hostname", f"{name}@test"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"),
            module=module,
        )

    def ready(self, name: str) -> None:
        """Wait until it consumes."""
        until(lambda: "ready." in self.log(name), within_s=WAIT_S, what=self.live.tail(name))

    def log(self, name: str) -> str:
        """What a worker said."""
        return self.live.log(name).read_text(errors="replace")

    def looks(self, name: str, job_id: str) -> int:
        """How often a worker took a ticket of the job from the queue."""
        return len(re.findall(rf"callsheet\.attempt\[{re.escape(job_id)}\.\d+\] received", self.log(name)))

    def submit(self, **options: Any) -> VideoJob:
        """A job as this version submits it."""
        job = generate_video.apply_async(kwargs={"prompt": "a cat", "model": "tiny-wan"}, **options)
        assert isinstance(job, VideoJob)
        return job

    def submit_newer(self) -> VideoJob:
        """A job whose record a newer version wrote: nobody sees it before it is one."""
        job = self.submit(countdown=600)
        with self.live.valkey.client() as raw:
            raw.hset(Keys().job(job.id), mapping={"format": FORMAT + 1, "not_before": "0", "novelty": "x"})
            raw.zadd(Keys().held(), {job.id: 0})
        return job

    def stopped_by_newer(self) -> VideoJob:
        """A job whose first attempt kept a newer version's checkpoint and gave its GPU away."""
        job = self.submit(countdown=600)
        ticket = self.begin_by_hand(job)
        lease = self.store.claim(ticket, worker="newer", token=uuid.uuid4().hex, lease_s=60)
        assert isinstance(lease, Lease)
        fence = (job.id, lease.attempt, lease.token)
        kept = Checkpoint(2, f"checkpoints/{job.id}/1-2", "abc", 3, format=CHECKPOINT_FORMAT + 1)
        assert self.store.keep_checkpoint(*fence, kept, useful_s=1.0, op=uuid.uuid4().hex) == []
        assert self.store.hand_back(*fence, reason="yields", op=uuid.uuid4().hex)
        return job

    def begin_by_hand(self, job: VideoJob) -> Ticket:
        """A ticket that no worker of the queue gets to see."""
        with self.live.valkey.client() as raw:
            raw.hset(Keys().job(job.id), "build", "by hand")  # parked: only ``assign`` moves it
            raw.zadd(Keys().held(), {job.id: "+inf"})
            ticket = self.store.assign(job.id, f"{QUEUE}.hand", reason="", op=uuid.uuid4().hex)
            raw.hset(Keys().job(job.id), "build", "")
        assert ticket is not None
        return ticket

    def record(self, job: VideoJob) -> Job:
        """The job's record."""
        return self.store.get(job.id)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder: Path = tmp_path_factory.mktemp("versions")
    with Valkey() as valkey, Live(folder, valkey, heal_after_s=60.0) as live:
        fleet = Fleet(live)
        fleet.worker("old", OLD)
        app.use(live.settings)
        fleet.ready("old")
        yield fleet


def publish_with_more(ticket: Ticket) -> None:
    """A ticket as a newer version within this format may write it."""
    app.tasks["callsheet.attempt"].apply_async(
        args=(ticket.job_id, ticket.number, ticket.queue, ticket.format, "more"),
        kwargs={"colour": "blue"},
        task_id=ticket.id,
        queue=ticket.queue,
        routing_key=ticket.queue,
        declare=[],
    )


def test_an_old_worker_runs_a_ticket_that_says_more(fleet: Fleet) -> None:
    job = fleet.submit(countdown=600)
    ticket = fleet.begin_by_hand(job)
    publish_with_more(Ticket(job.id, ticket.number, QUEUE, ticket.format))
    assert job.get(timeout=WAIT_S)["seed"] >= 0
    assert fleet.record(job).attempt == 1


def test_old_and_newer_work_side_by_side(fleet: Fleet) -> None:
    waiting = [fleet.submit_newer(), fleet.stopped_by_newer()]
    ids = [job.id for job in waiting]
    until(lambda: all(fleet.looks("old", name) for name in ids), within_s=WAIT_S, what=fleet.live.tail("old"))
    _others_pass(fleet)
    _nothing_spins(fleet, ids)
    for job, attempts in zip(waiting, (0, 1), strict=True):
        record = fleet.record(job)
        assert (record.ended, record.attempt, record.crashes) == (False, attempts, 0)
    fleet.worker("newer", NEW)
    fleet.ready("newer")
    for job, attempts in zip(waiting, (1, 2), strict=True):
        job.get(timeout=WAIT_S)
        assert fleet.record(job).attempt == attempts
        assert fleet.record(job).state is State.SUCCEEDED
    assert f"callsheet.attempt[{ids[0]}" in fleet.log("newer")
    _both_run_what_both_know(fleet)


def _others_pass(fleet: Fleet) -> None:
    jobs = [fleet.submit() for _ in range(3)]
    for job in jobs:
        job.get(timeout=WAIT_S)
    assert [fleet.record(job).attempt for job in jobs] == [1, 1, 1]


def _nothing_spins(fleet: Fleet, ids: list[str]) -> None:
    """Each round is followed by a pause, so the worker cannot have looked more often than time allows."""
    before, began = sum(fleet.looks("old", name) for name in ids), time.monotonic()

    def more() -> int:
        return sum(fleet.looks("old", name) for name in ids) - before

    until(lambda: more() >= 4 * len(ids), within_s=WAIT_S, what="looks at what is newer")
    assert more() <= ((time.monotonic() - began) / PASS_ON_S + 2) * len(ids)


def _both_run_what_both_know(fleet: Fleet) -> None:
    """No job of this format is refused by either; some are run by each."""
    mine: list[VideoJob] = []

    def ran_by(name: str) -> bool:
        return any(fleet.looks(name, job.id) for job in mine)

    def one_more() -> bool:
        mine.extend(fleet.submit() for _ in range(4))
        for job in mine[-4:]:
            job.get(timeout=WAIT_S)
        return ran_by("old") and ran_by("newer")

    until(one_more, within_s=WAIT_S, what="jobs run by both")
    assert {fleet.record(job).attempt for job in mine} == {1}
    assert {fleet.record(job).ticket for job in mine} == {1}
