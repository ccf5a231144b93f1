"""Finding GPUs by name, and what operators say about them, on the in-memory store."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from callsheet.errors import GpuNotFound, RequestError, WaitTimeout
from callsheet.records.gpus import GpuOrder
from callsheet.store.memory import MemoryStore
from callsheet.tasks.gpu_orders import (
    MAX_WHY,
    busy,
    checked_why,
    cordon,
    drain,
    find_gpu,
    uncordon,
    wait_idle,
)
from tests.support.clock import Clock
from tests.support.jobs import GPU, op, running

NAME = "h100-0@a"


@pytest.fixture
def store() -> MemoryStore:
    """With one live GPU, and an order for one that is gone."""
    store = MemoryStore(Clock())
    store.beat_gpu(replace(GPU, job_id=""), ttl_s=60)
    store.order_gpu("t4-1@gone", GpuOrder("cordoned", "ann", "why"), op=op())
    return store


@pytest.mark.parametrize(
    ("name", "found"),
    [(NAME, NAME), ("h100-0", NAME), ("t4-1", "t4-1@gone"), ("t4-1@gone", "t4-1@gone")],
)
def test_a_gpu_is_found_by_its_whole_name_or_the_part_before_the_at(
    store: MemoryStore, name: str, found: str
) -> None:
    assert find_gpu(store, name) == found


@pytest.mark.parametrize("name", ["h100", "h100-0@", "@a", "", "h100-1@a", "H100-0"])
def test_an_unknown_gpu_is_told_with_those_that_are_known(store: MemoryStore, name: str) -> None:
    with pytest.raises(GpuNotFound, match=r"h100-0@a, t4-1@gone.*callsheet gpu list.*--force") as told:
        find_gpu(store, name)
    assert told.value.exit_code == 3


def test_force_takes_whole_names_only(store: MemoryStore) -> None:
    assert find_gpu(store, "h100-1@b", force=True) == "h100-1@b"
    assert find_gpu(store, "h100-0", force=True) == NAME
    for name in ("h100-1", "h100-1@", "@b", "@"):
        with pytest.raises(GpuNotFound, match="a whole name only"):
            find_gpu(store, name, force=True)


def test_a_part_that_several_have_is_no_name(store: MemoryStore) -> None:
    store.beat_gpu(replace(GPU, name="h100-0@b"), ttl_s=60)
    with pytest.raises(RequestError, match="h100-0@a, h100-0@b"):
        find_gpu(store, "h100-0")
    assert find_gpu(store, "h100-0@b") == "h100-0@b"


def test_an_empty_fleet_is_told_as_such() -> None:
    with pytest.raises(GpuNotFound, match="none is alive"):
        find_gpu(MemoryStore(Clock()), "h100-0")


def test_the_newest_order_counts_until_it_is_lifted(store: MemoryStore) -> None:
    cordon(store, NAME, why=" fan ", who="ann")
    now = store.now()
    assert store.gpu_order(NAME) == GpuOrder("cordoned", "ann", "fan", since=now)
    drain(store, NAME, why="fan", who="bob", within_s=None)
    assert store.gpu_order(NAME) == GpuOrder("draining", "bob", "fan", since=now)
    drain(store, NAME, why="fan", who="bob", within_s=900)
    order = store.gpu_order(NAME)
    assert order is not None
    assert order.give_up_at == pytest.approx(now + 900)
    drain(store, NAME, why="fan", who="bob", within_s=0)
    order = store.gpu_order(NAME)
    assert order is not None
    assert order.give_up_at == pytest.approx(now)
    assert uncordon(store, NAME)
    assert not uncordon(store, NAME)
    assert store.gpu_order(NAME) is None


def test_an_order_names_who_gives_it(store: MemoryStore) -> None:
    with pytest.raises(RequestError, match="--as"):
        cordon(store, NAME, why="fan", who=" ")
    with pytest.raises(RequestError, match="--as"):
        drain(store, NAME, why="fan", who="", within_s=None)
    assert store.gpu_order(NAME) is None


@pytest.mark.parametrize("within_s", [8.64e15, float("inf"), float("nan")])
def test_a_drain_has_an_end_that_comes(store: MemoryStore, within_s: float) -> None:
    with pytest.raises(RequestError, match="366 days"):
        drain(store, NAME, why="fan", who="bob", within_s=within_s)
    assert store.gpu_order(NAME) is None


@pytest.mark.parametrize("why", ["", "  \n", "x" * (MAX_WHY + 1)])
def test_a_reason_is_needed(store: MemoryStore, why: str) -> None:
    with pytest.raises(RequestError, match="--reason"):
        cordon(store, NAME, why=why, who="")
    with pytest.raises(RequestError, match="--reason"):
        drain(store, NAME, why=why, who="", within_s=None)
    assert store.gpu_order(NAME) is None
    assert checked_why("x" * MAX_WHY)


def test_a_gpu_is_busy_by_its_heartbeat_or_by_the_record(store: MemoryStore) -> None:
    names = [NAME, "t4-1@gone"]
    assert busy(store, names) == {}
    store.beat_gpu(GPU, ttl_s=60)
    assert busy(store, names) == {NAME: "film"}
    store.beat_gpu(replace(GPU, job_id=""), ttl_s=60)
    lease = running(store)
    assert busy(store, names) == {NAME: lease.job.id}
    assert busy(store, ["t4-1@gone"]) == {}


def test_the_wait_for_an_idle_gpu_ends_with_its_job_or_at_its_limit(store: MemoryStore) -> None:
    lease = running(store)
    with pytest.raises(WaitTimeout, match=f"{NAME} with job {lease.job.id}"):
        wait_idle(store, [NAME], 0.0)
    waiter = threading.Thread(target=wait_idle, args=(store, [NAME], 20.0))
    waiter.start()
    store.cancel(lease.job.id, reason="", op=op())
    waiter.join(20)
    assert not waiter.is_alive()
    wait_idle(store, [NAME], 0.0)
