"""Object storage refuses, is slow, is full, or holds damaged checkpoints: no film suffers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import pytest

from callsheet.artifacts.objects import Objects, open_objects
from callsheet.artifacts.places import parse_place
from callsheet.artifacts.stores import S3Access
from callsheet.records.jobs import Job, Ticket
from callsheet.records.states import State
from tests.support.faulty_objects import FaultyObjects
from tests.support.full_disk import full_disk
from tests.support.live import until
from tests.support.s3 import FakeS3
from tests.support.stage import Stage

pytestmark = [pytest.mark.torch, pytest.mark.chaos]

SAVE_ALWAYS = 0.001  # a background save whenever none is under way
SLOW_S = 2.0


@pytest.fixture
def objects() -> FaultyObjects:
    return FaultyObjects()


@pytest.fixture
def stage(tmp_path: Path, tiny_models: Path, objects: FaultyObjects) -> Stage:
    return Stage(tmp_path, tiny_models, objects)


@pytest.fixture
def eager_stage(tmp_path: Path, tiny_models: Path, objects: FaultyObjects) -> Stage:
    """It saves in the background all the time."""
    return Stage(tmp_path, tiny_models, objects, checkpoint_interval_s=SAVE_ALWAYS)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, tiny_models: Path) -> str:
    """Hash of the frames of the undisturbed film."""
    stage = Stage(tmp_path_factory.mktemp("whole"), tiny_models, FaultyObjects())
    return stage.run(stage.job()).frames_sha256


def check_whole(job: Job, whole: str) -> None:
    assert (job.state, job.frames_sha256, job.exact, job.crashes) == (State.SUCCEEDED, whole, True, 0)


# -- storage that takes nothing


@contextmanager
def _memory(_: Path, stack: ExitStack) -> Iterator[tuple[Objects, Callable[[], object]]]:
    objects = FaultyObjects()

    def refuse() -> None:
        objects.refuses = {"write"}
        stack.callback(setattr, objects, "refuses", ())

    yield objects, refuse


@contextmanager
def _full_memory(_: Path, stack: ExitStack) -> Iterator[tuple[Objects, Callable[[], object]]]:
    objects = FaultyObjects()

    def fill() -> None:
        objects.capacity = 0
        stack.callback(setattr, objects, "capacity", None)

    yield objects, fill


@contextmanager
def _file_for_folder(folder: Path, stack: ExitStack) -> Iterator[tuple[Objects, Callable[[], object]]]:
    films = folder / "films"

    def replace() -> None:
        films.write_text("a file where the folder should be")
        stack.callback(films.unlink)

    yield open_objects(films.as_uri()), replace


class FullDisk(Objects):
    """A folder on a disk that is full while ``full``; nothing else that this process writes is hindered."""

    full = False

    def put(self, key: str, data: bytes | Path) -> None:
        with full_disk(1000) if self.full else nullcontext():
            super().put(key, data)


@contextmanager
def _full_disk(folder: Path, stack: ExitStack) -> Iterator[tuple[Objects, Callable[[], object]]]:
    objects = FullDisk(parse_place((folder / "films").as_uri()), S3Access())

    def fill() -> None:
        objects.full = True
        stack.callback(setattr, objects, "full", False)

    yield objects, fill


@contextmanager
def _s3(_: Path, stack: ExitStack) -> Iterator[tuple[Objects, Callable[[], object]]]:
    with FakeS3() as s3:

        def deny() -> None:
            s3.status = 403
            stack.callback(setattr, s3, "status", 0)

        access = {"s3_access_key_id": "id", "s3_secret_access_key": "key", "s3_region": "us-east-1"}
        yield open_objects("s3://films", s3_endpoint=s3.endpoint, s3_allow_http=True, **access), deny


FAULTS = {
    "it refuses": _memory,
    "it is full": _full_memory,
    "a file for its folder": _file_for_folder,
    "the disk is full": _full_disk,
    "S3 denies": _s3,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_yield_that_cannot_be_saved_is_declined(
    tmp_path: Path, tiny_models: Path, whole: str, fault: str
) -> None:
    with ExitStack() as harm, FAULTS[fault](tmp_path, harm) as (objects, strike):
        stage = Stage(tmp_path, tiny_models, objects)
        ticket = stage.job()

        def disturb() -> None:
            strike()
            stage.yield_now(ticket)

        stage.journal.at[2] = disturb
        stage.journal.at[3] = harm.close
        job = stage.run(ticket)
    check_whole(job, whole)
    assert (job.attempt, job.preemptions, job.order) == (1, 0, "")
    (reason,) = stage.reasons(ticket, "declined")
    assert "step 2 could not be saved" in reason


def test_who_must_leave_goes_back_to_the_last_kept_step(
    eager_stage: Stage, objects: FaultyObjects, whole: str
) -> None:
    stage = eager_stage
    ticket = stage.job()

    def leave() -> None:
        until(lambda: stage.record(ticket).checkpoint is not None, what="the background save of step 1")
        objects.refuses = {"write"}
        stage.leave()

    stage.journal.at[2] = leave
    job = stage.run(ticket)
    assert (job.state, job.step, job.preemptions, job.crashes) == (State.PENDING, 1, 0, 0)
    (reason,) = stage.reasons(ticket, "handed-back")
    assert "at step 1, as step 2 was not saved" in reason
    objects.refuses = ()
    job = stage.run(stage.again(ticket))
    check_whole(job, whole)
    assert (job.from_step, job.restarts) == (1, 0)


def test_a_background_save_that_fails_is_tried_again(
    eager_stage: Stage, objects: FaultyObjects, caplog: pytest.LogCaptureFixture
) -> None:
    stage = eager_stage
    undisturbed = stage.run(stage.job(steps=8)).frames_sha256
    ticket = stage.job(steps=8)
    objects.refuses = {"write"}
    objects.asked.clear()

    def mend() -> None:
        until(lambda: "was not saved, the job goes on" in caplog.text, what="a save that failed")
        objects.refuses = ()

    stage.journal.at[3] = mend
    stage.journal.at[7] = lambda: until(lambda: stage.record(ticket).checkpoint is not None)
    job = stage.run(ticket)
    check_whole(job, undisturbed)
    assert (job.attempt, job.restarts) == (1, 0)
    assert len([key for verb, key in objects.asked if verb == "write" and "checkpoints/" in key]) >= 2


def test_a_film_waits_for_storage_that_is_away(
    tmp_path: Path, tiny_models: Path, objects: FaultyObjects, whole: str
) -> None:
    stage = Stage(tmp_path, tiny_models, objects, storage_patience_s=30.0)

    def mend() -> None:
        until(lambda: any(verb == "write" for verb, _ in objects.asked))
        objects.refuses = ()

    mender = threading.Thread(target=mend)

    def strike() -> None:
        objects.refuses = {"write"}
        mender.start()

    stage.journal.at["store"] = strike
    check_whole(stage.run(stage.job()), whole)
    mender.join()


# -- storage that is slow


def test_slow_saves_do_not_hold_up_the_steps(eager_stage: Stage, objects: FaultyObjects, whole: str) -> None:
    stage, objects.delay_s = eager_stage, SLOW_S
    times: list[float] = []
    ticket = stage.job()
    for step in (1, 4):
        stage.journal.at[step] = lambda: times.append(time.monotonic())
    stage.journal.at["decode"] = lambda: setattr(objects, "delay_s", 0.0)
    check_whole(stage.run(ticket), whole)
    took_s = times[1] - times[0]
    assert any(verb == "write" and "checkpoints/" in key for verb, key in objects.asked)
    assert took_s < SLOW_S
    print(f"\n3 steps beside a save of {SLOW_S} s: {took_s:.2f} s")


def test_a_yield_and_a_resume_wait_for_slow_storage(stage: Stage, objects: FaultyObjects, whole: str) -> None:
    ticket = stage.job()
    objects.delay_s = SLOW_S
    stage.journal.at[2] = lambda: stage.yield_now(ticket)
    job = stage.run(ticket)
    assert (job.state, job.step, job.preemptions) == (State.PENDING, 2, 1)
    stage.journal.at["denoise"] = lambda: setattr(objects, "delay_s", 0.0)
    job = stage.run(stage.again(ticket))
    check_whole(job, whole)
    assert job.from_step == 2


# -- checkpoints that are damaged


def flip(objects: FaultyObjects, key: str) -> None:
    objects.corrupt(key)


def truncate(objects: FaultyObjects, key: str) -> None:
    objects.truncate(key)


def remove(objects: FaultyObjects, key: str) -> None:
    del objects.held[key]


DAMAGES = pytest.mark.parametrize("damage", [flip, truncate, remove], ids=lambda one: one.__name__)


def kept_twice(stage: Stage) -> Ticket:
    """A job that waits with checkpoints of steps 1 and 3, and its next ticket."""
    ticket = stage.job()
    for step in (1, 3):
        stage.journal.at[step] = partial(stage.yield_now, ticket)
        assert stage.run(ticket).step == step
        ticket = stage.again(ticket)
    return ticket


@DAMAGES
def test_the_one_before_a_damaged_checkpoint_is_used(
    stage: Stage, objects: FaultyObjects, whole: str, damage: Callable[[FaultyObjects, str], None]
) -> None:
    ticket = kept_twice(stage)
    newest = stage.record(ticket).checkpoint
    assert newest is not None
    damage(objects, newest.key)
    job = stage.run(ticket)
    check_whole(job, whole)
    assert (job.from_step, job.restarts, job.preemptions) == (1, 0, 2)
    assert "step 3: " in stage.reasons(ticket, "resumed")[-1]


@DAMAGES
def test_with_both_damaged_it_begins_again_and_says_why(
    stage: Stage, objects: FaultyObjects, whole: str, damage: Callable[[FaultyObjects, str], None]
) -> None:
    ticket = kept_twice(stage)
    before = stage.record(ticket)
    for kept in (before.checkpoint, before.checkpoint_before):
        assert kept is not None
        damage(objects, kept.key)
    job = stage.run(ticket)
    check_whole(job, whole)
    assert (job.from_step, job.restarts, job.preemptions) == (0, 1, 2)
    (reason,) = stage.reasons(ticket, "restarted")
    assert "step 3: " in reason
    assert "step 1: " in reason
    assert job.gpu_s_wasted >= before.gpu_s_useful


def test_a_checkpoint_that_cannot_be_read_now_is_not_given_up(
    stage: Stage, objects: FaultyObjects, whole: str
) -> None:
    ticket = kept_twice(stage)
    objects.refuses = {"read"}
    job = stage.run(ticket)
    assert (job.state, job.step, job.restarts, job.preemptions) == (State.PENDING, 3, 0, 2)
    objects.refuses = ()
    job = stage.run(stage.again(ticket))
    check_whole(job, whole)
    assert (job.from_step, job.restarts) == (3, 0)
