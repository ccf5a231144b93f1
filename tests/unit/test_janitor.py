"""What the janitor deletes, and what it never touches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import redis

from callsheet.artifacts.checkpoints import save_checkpoint
from callsheet.artifacts.films import film_keys
from callsheet.artifacts.objects import Entry, Objects
from callsheet.beat import janitor
from callsheet.beat.janitor import Bin, sweep_checkpoints, sweep_erased, sweep_records
from callsheet.beat.pidbox import sweep_pidbox
from callsheet.errors import StorageError
from callsheet.records.jobs import Checkpoint
from callsheet.settings import Settings
from callsheet.store.memory import MemoryStore
from callsheet.store.protocol import Lease
from tests.support.clock import Clock
from tests.support.faulty_objects import FaultyObjects
from tests.support.jobs import FAILURE, ended, finish, op, running, submitted

DAY = 86_400.0


@dataclass(frozen=True)
class Tools:
    """A memory store and a storage in memory that share one clock."""

    store: MemoryStore
    storage: FaultyObjects
    settings: Settings

    @property
    def objects(self) -> Callable[[], Objects]:
        return lambda: self.storage

    @property
    def broker(self) -> Callable[[], redis.Redis | None]:
        return lambda: None


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tools(clock: Clock) -> Tools:
    return Tools(MemoryStore(clock), FaultyObjects(clock=clock), Settings())


def saved(tools: Tools, lease: Lease, step: int, *, keep: bool = True) -> Checkpoint:
    fence = (lease.job.id, lease.attempt, lease.token)
    checkpoint = save_checkpoint(tools.storage, *fence, step, b"latents", build="")
    if keep:
        tools.store.keep_checkpoint(*fence, checkpoint, useful_s=1, op=op())
    return checkpoint


def stray(tools: Tools, job_id: str, *, token: str = "stray-token") -> str:
    return save_checkpoint(tools.storage, job_id, 9, token, 1, b"x", build="").key


def test_a_running_job_keeps_what_its_record_points_at(tools: Tools, clock: Clock) -> None:
    lease = running(tools.store, lease_s=1e6)
    checkpoints = [saved(tools, lease, step) for step in (1, 2, 3)]
    clock.advance(janitor.WRITING_S - 1)
    assert sweep_checkpoints(tools) == 0  # another may be about to get into the record
    clock.advance(2)
    young = saved(tools, lease, 4, keep=False)
    assert sweep_checkpoints(tools) == 1
    assert list(tools.storage.held) == [checkpoints[1].key, checkpoints[2].key, young.key]


def test_a_job_that_succeeded_needs_none(tools: Tools) -> None:
    lease = running(tools.store)
    saved(tools, lease, 1)
    finish(tools.store, lease)
    other = saved(tools, running(tools.store), 1)
    assert sweep_checkpoints(tools) == 1
    assert list(tools.storage.held) == [other.key]


def test_a_failed_job_keeps_its_own_for_a_requeue_until_their_retention(tools: Tools, clock: Clock) -> None:
    lease = running(tools.store)
    kept = saved(tools, lease, 1)
    finish(tools.store, lease, FAILURE)
    stray(tools, lease.job.id)
    clock.advance(DAY - 1)
    assert sweep_checkpoints(tools) == 1
    assert list(tools.storage.held) == [kept.key]
    clock.advance(2)
    assert sweep_checkpoints(tools) == 1
    assert tools.storage.held == {}


def test_the_retention_is_a_setting(tools: Tools, clock: Clock) -> None:
    shorter = Tools(tools.store, tools.storage, Settings(checkpoint_retention_s=60))
    lease = running(tools.store)
    saved(tools, lease, 1)
    finish(tools.store, lease, FAILURE)
    clock.advance(61)
    assert sweep_checkpoints(shorter) == 1


def test_objects_without_a_record_go_unless_they_are_new(tools: Tools, clock: Clock) -> None:
    stray(tools, "gone"), stray(tools, "gone/too")
    assert sweep_checkpoints(tools) == 0
    clock.advance(janitor.WRITING_S + 1)
    assert sweep_checkpoints(tools) == 2


class Unordered(FaultyObjects):
    """Lists the attempts of all jobs in turn, since a folder has no order."""

    def entries(self, prefix: str = "") -> Iterator[Entry]:
        yield from sorted(super().entries(prefix), key=lambda entry: entry.key.split("/")[2])


def test_a_listing_needs_no_order(clock: Clock) -> None:
    tools = Tools(MemoryStore(clock), Unordered(clock=clock), Settings())
    for job_id in ("gone-1", "gone-2"):
        stray(tools, job_id, token="a"), stray(tools, job_id, token="b")
    clock.advance(janitor.WRITING_S + 1)
    assert sweep_checkpoints(tools) == 4


def test_one_object_that_stays_does_not_hold_up_the_rest(tools: Tools, clock: Clock) -> None:
    keys = [stray(tools, f"gone-{n}") for n in range(3)]
    clock.advance(janitor.WRITING_S + 1)
    tools.storage.stubborn = {keys[0]}
    assert sweep_checkpoints(tools) == 2
    assert list(tools.storage.held) == keys[:1]


def test_a_run_is_bounded_and_the_next_one_goes_on(
    tools: Tools, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(janitor, "OBJECTS", 4)
    monkeypatch.setattr(janitor, "BATCH", 3)
    for number in range(10):
        stray(tools, f"gone-{number}")
    clock.advance(janitor.WRITING_S + 1)
    assert [sweep_checkpoints(tools) for _ in range(4)] == [4, 4, 2, 0]


def test_a_dead_storage_costs_a_bounded_time(tools: Tools, clock: Clock) -> None:
    tools.storage.refuses = {"delete"}
    bin_ = Bin(tools.storage, clock=clock)
    for number in range(10):
        bin_.drop(f"key-{number}", "test")
        clock.advance(20)  # what one request to it costs
    assert len(tools.storage.asked) == 2
    tools.storage.refuses = {"list"}
    with pytest.raises(StorageError):
        sweep_checkpoints(tools)


def erased(tools: Tools, job_id: str = "") -> str:
    name = ended(tools.store, job_id)
    tools.store.erase(name, op=op())
    return name


def test_an_erased_job_is_looked_at_until_nobody_can_write_any_more(tools: Tools, clock: Clock) -> None:
    job = erased(tools)
    assert sweep_erased(tools) == 0
    assert job in tools.store.erasing()
    films = film_keys(job, 1, "late-token")
    tools.storage.put(films.film, b"mp4")
    tools.storage.put(film_keys(f"{job}0", 1, "t").film, b"of another job")
    stray(tools, job)
    clock.advance(janitor.ERASED_S + 1)
    assert sweep_erased(tools) == 2
    assert job in tools.store.erasing()  # something had come: look once more
    assert sweep_erased(tools) == 0
    assert tools.store.erasing() == {}
    assert len(tools.storage.held) == 1


def test_an_erased_job_waits_for_a_storage_that_refuses(tools: Tools, clock: Clock) -> None:
    stubborn, other = erased(tools), erased(tools)
    key, free = stray(tools, stubborn), stray(tools, other)
    clock.advance(janitor.ERASED_S + 1)
    tools.storage.stubborn = {key}
    assert sweep_erased(tools) == 1
    tools.storage.refuses = {"list"}
    assert sweep_erased(tools) == 0
    assert set(tools.store.erasing()) == {stubborn, other}
    tools.storage.refuses, tools.storage.stubborn = (), ()
    assert sweep_erased(tools) == 1
    assert sweep_erased(tools) == 0
    assert tools.store.erasing() == {}
    assert free not in tools.storage.held


def test_records_are_counted(tools: Tools) -> None:
    submitted(tools.store), ended(tools.store)
    assert sweep_records(tools) == 2


def test_a_broker_that_is_no_redis_has_no_reply_queues(tools: Tools) -> None:
    assert sweep_pidbox(tools) == 0
