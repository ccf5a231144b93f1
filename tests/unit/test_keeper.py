"""The keeper in a worker's parent process, driven round by round."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace

import pytest

from callsheet.errors import Unreachable
from callsheet.records.gpus import Gpu
from callsheet.records.states import State
from callsheet.store.memory import MemoryStore
from callsheet.store.protocol import Lease
from callsheet.workers.keeper import BUSY_LOOK_S, IDLE_LOOK_S, Keeper, process_lives
from callsheet.workers.slate import Running, Slate
from tests.support.clock import Clock
from tests.support.fleet import gpu
from tests.support.jobs import op, reap, running

GPU = gpu("h100", queues=())
QUEUES = ("pro.h100", "free.h100")


class Wants:
    """A subscriber that wants the same queues always."""

    def __init__(self) -> None:
        self.queues: tuple[str, ...] = ()
        self.saw: list[list[Gpu]] = []

    def look(self, fleet: Iterable[Gpu]) -> None:
        self.saw.append(list(fleet))
        self.queues = QUEUES

    def rest(self) -> None:
        self.queues = ()


class Bench:
    """A keeper with everything around it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = MemoryStore(self.clock)
        self.slate = Slate()
        self.wants = Wants()
        self.refilled: list[str] = []
        self.alive = True
        self.keeper = Keeper(
            self.store,
            self.slate,
            GPU,
            subscriber=self.wants,
            lease_s=3.0,
            renew_s=1.0,
            refill=self.refilled.append,
            alive=lambda _pid: self.alive,
            clock=self.clock,
        )

    def run(self, lease: Lease, **changes: object) -> Running:
        """The child says that it runs this lease's attempt."""
        says = Running(lease.job.id, lease.attempt, lease.token, lease.job.queue, steps=8, pid=os.getpid())
        self.slate.write_running(replace(says, **changes))  # type: ignore[arg-type]
        return says

    def job(self, lease: Lease) -> State:
        return self.store.get(lease.job.id).state


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_cold_child_serves_nothing_and_is_not_listed(bench: Bench) -> None:
    assert bench.keeper.look() == IDLE_LOOK_S
    assert bench.store.gpus() == []
    assert bench.wants.queues == ()


def test_a_warm_child_makes_the_gpu_listed_with_its_queues(bench: Bench) -> None:
    bench.slate.write_running(Running(pid=os.getpid(), resident=("wan",)))
    bench.keeper.look()
    (listed,) = bench.store.gpus()
    assert (listed.name, listed.queues, listed.resident, listed.job_id) == (GPU.name, QUEUES, ("wan",), "")


def test_a_dead_child_ends_the_subscription_and_then_the_listing(bench: Bench) -> None:
    bench.slate.write_running(Running(pid=os.getpid()))
    bench.keeper.look()
    bench.alive = False
    bench.keeper.look()
    assert bench.wants.queues == ()
    bench.clock.advance(11)
    bench.keeper.look()
    assert bench.store.gpus() == []


def test_it_renews_each_second_and_not_more(bench: Bench) -> None:
    lease = running(bench.store, lease_s=3.0)
    bench.run(lease)
    assert bench.keeper.look() == BUSY_LOOK_S
    first = bench.store.get(lease.job.id).lease_until
    bench.clock.advance(0.5)
    bench.keeper.look()
    assert bench.store.get(lease.job.id).lease_until == first
    bench.clock.advance(0.5)
    bench.keeper.look()
    assert bench.store.get(lease.job.id).lease_until == pytest.approx(first + 1.0)


def test_a_finished_step_is_told_at_once(bench: Bench) -> None:
    lease = running(bench.store)
    bench.run(lease)
    bench.keeper.look()
    bench.run(lease, step=3, phase="denoise")
    bench.keeper.look()
    record = bench.store.get(lease.job.id)
    assert (record.step, record.phase) == (3, "denoise")
    bench.clock.advance(1.0)
    bench.keeper.look()
    assert bench.store.gpus()[0].step == 3


def test_a_long_job_keeps_its_lease(bench: Bench) -> None:
    lease = running(bench.store, lease_s=3.0)
    bench.run(lease)
    for _ in range(100):
        bench.keeper.look()
        bench.clock.advance(1.0)
        assert reap(bench.store, max_crashes=3) == []


def test_the_lease_of_a_dead_child_runs_out(bench: Bench) -> None:
    lease = running(bench.store, lease_s=3.0)
    bench.run(lease)
    bench.keeper.look()
    bench.alive = False
    bench.clock.advance(3.1)
    bench.keeper.look()
    assert reap(bench.store, max_crashes=3) == [lease.job.id]
    assert bench.job(lease) is State.PENDING


def test_orders_reach_the_child(bench: Bench) -> None:
    lease = running(bench.store)
    bench.run(lease)
    bench.keeper.look()
    bench.store.order(lease.job.id, lease.attempt, "yield", reason="test", op=op())
    bench.clock.advance(1.0)
    bench.keeper.look()
    assert bench.slate.read_order(lease.token) == "yield"
    bench.store.cancel(lease.job.id, reason="test", op=op())
    bench.clock.advance(1.0)
    bench.keeper.look()
    assert bench.slate.read_order(lease.token) == "cancel"


def test_a_ghost_is_told_that_it_is_one(bench: Bench) -> None:
    lease = running(bench.store, lease_s=3.0)
    bench.run(lease)
    bench.clock.advance(4.0)
    reap(bench.store, max_crashes=3)
    bench.keeper.look()
    assert bench.slate.read_order(lease.token) == "fenced"
    assert bench.job(lease) is State.PENDING


def test_a_claim_refills_its_queue_once(bench: Bench) -> None:
    lease = running(bench.store)
    bench.run(lease)
    for _ in range(3):
        bench.clock.advance(1.0)
        bench.keeper.look()
    assert bench.refilled == [lease.job.queue]


def test_a_store_that_is_away_is_told_to_the_thread(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = running(bench.store)
    bench.run(lease)

    def away(*_: object, **__: object) -> str:
        raise Unreachable("away")

    monkeypatch.setattr(bench.store, "renew", away)
    with pytest.raises(Unreachable):
        bench.keeper.look()
    monkeypatch.undo()
    bench.keeper.look()  # and the next round renews, since none was counted
    assert bench.store.get(lease.job.id).state is State.RUNNING


def test_leaving_takes_the_gpu_off_the_list(bench: Bench) -> None:
    bench.slate.write_running(Running(pid=os.getpid()))
    bench.keeper.look()
    bench.keeper.leave()
    assert bench.store.gpus() == []


def test_process_lives_knows_the_living_the_dead_and_the_zombies() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert process_lives(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet collected: a zombie
    assert not process_lives(child.pid)
    child.wait()
    assert not process_lives(child.pid)
