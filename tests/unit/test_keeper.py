"""The keeper in a worker's parent process, driven round by round."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

import pytest

from callsheet.errors import Unreachable
from callsheet.records.gpus import Gpu, GpuOrder
from callsheet.records.lanes import Desired
from callsheet.records.states import State
from callsheet.store.memory import MemoryStore
from callsheet.store.protocol import Lease
from callsheet.workers.keeper import BUSY_LOOK_S, IDLE_LOOK_S, Keeper, Pace, process_lives
from callsheet.workers.slate import LOADING, Running, Slate
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
        self.wishes: list[Desired | None] = []

    def look(
        self, wish: Desired | None, resident: Collection[str], fleet: Callable[[], Iterable[Gpu]]
    ) -> None:
        self.resident = tuple(resident)
        self.wishes.append(wish)
        self.saw.append(list(fleet()))
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
        self.ordered: list[str] = []
        self.alive = True
        self.keeper = Keeper(
            self.store,
            self.slate,
            GPU,
            subscriber=self.wants,
            pace=Pace(lease_s=3.0, renew_s=1.0, yield_grace_s=5.0, stuck_s=60.0),
            refill=self.refilled.append,
            load=self.ordered.append,
            alive=lambda _pid: self.alive,
            kill=self.kill,
            clock=self.clock,
        )

    def kill(self, _pid: int) -> None:
        self.alive = False

    def run(self, lease: Lease, **changes: object) -> Running:
        """The child says that it runs this lease's attempt."""
        says = Running(
            lease.job.id, lease.attempt, lease.token, queue=lease.job.queue, steps=8, pid=os.getpid()
        )
        self.slate.write_running(replace(says, **changes))  # type: ignore[arg-type]
        return says

    def job(self, lease: Lease) -> State:
        return self.store.get(lease.job.id).state


def away(*_: object, **__: object) -> str:
    """In place of a verb."""
    raise Unreachable("away")


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


def test_the_job_of_a_dead_child_goes_back_at_once(bench: Bench) -> None:
    lease = running(bench.store, lease_s=3.0)
    bench.run(lease)
    bench.keeper.look()
    bench.alive = False
    for _ in range(3):
        bench.keeper.look()
    job = bench.store.get(lease.job.id)
    assert (job.state, job.crashes, job.preemptions) == (State.PENDING, 1, 0)
    assert bench.store.events(job.id)[-1].reason == "its process died"


def test_a_dead_childs_job_is_told_when_the_store_is_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = running(bench.store, lease_s=3.0)
    bench.run(lease)
    bench.keeper.look()
    bench.alive = False
    monkeypatch.setattr(bench.store, "lose", away)
    with pytest.raises(Unreachable):
        bench.keeper.look()
    monkeypatch.undo()
    bench.slate.write_running(Running(pid=os.getpid()))  # the next child is there
    bench.alive = True
    bench.keeper.look()
    assert bench.job(lease) is State.PENDING


def test_a_child_that_does_not_yield_is_killed_and_that_is_no_crash(bench: Bench) -> None:
    lease = running(bench.store)
    bench.run(lease)
    bench.keeper.look()
    bench.store.order(lease.job.id, 1, "yield", reason="test", op=op())
    for _ in range(9):
        bench.clock.advance(1.0)
        bench.keeper.look()
    job = bench.store.get(lease.job.id)
    assert (bench.alive, job.state, job.crashes, job.preemptions) == (False, State.PENDING, 0, 1)
    assert "did not obey" in bench.store.events(job.id)[-1].reason


def test_a_child_without_progress_is_killed(bench: Bench) -> None:
    lease = running(bench.store)
    bench.run(lease, phase="denoise")
    for _ in range(63):
        bench.keeper.look()
        bench.clock.advance(1.0)
    job = bench.store.get(lease.job.id)
    assert (bench.alive, job.state, job.crashes) == (False, State.PENDING, 1)


def test_a_signal_reaches_the_attempt_of_that_ticket_only(bench: Bench) -> None:
    lease = running(bench.store)
    assert not bench.keeper.tell(f"{lease.job.id}.1", "yield")  # nothing runs yet
    bench.run(lease, ticket=1)
    assert not bench.keeper.tell(f"{lease.job.id}.2", "yield")
    assert bench.keeper.tell(f"{lease.job.id}.1", "yield")
    assert bench.slate.read_order(lease.token) == "yield"


def test_a_weaker_order_never_replaces_a_stronger_one(bench: Bench) -> None:
    lease = running(bench.store)
    bench.run(lease, ticket=1)
    bench.keeper.tell(lease.job.id, "cancel")
    bench.keeper.tell(f"{lease.job.id}.1", "yield")
    bench.keeper.leave_soon()
    assert bench.slate.read_order(lease.token) == "cancel"


def test_an_order_that_was_declined_is_taken_back(bench: Bench) -> None:
    lease = running(bench.store)
    bench.run(lease)
    bench.keeper.look()
    bench.store.order(lease.job.id, 1, "yield", reason="test", op=op())
    bench.clock.advance(1.0)
    bench.keeper.look()
    bench.store.decline(lease.job.id, 1, lease.token, reason="no storage", op=op())
    bench.clock.advance(1.0)
    bench.keeper.look()
    assert bench.slate.read_order(lease.token) == ""


def test_a_signal_is_not_taken_back_by_a_record_that_knows_nothing_of_it(bench: Bench) -> None:
    lease = running(bench.store)
    bench.run(lease, ticket=1)
    bench.keeper.look()
    bench.keeper.tell(f"{lease.job.id}.1", "yield")
    for _ in range(3):
        bench.clock.advance(1.0)
        bench.keeper.look()
    assert bench.slate.read_order(lease.token) == "yield"
    bench.run(lease, ticket=1, declined=1)
    bench.keeper.look()
    assert bench.slate.read_order(lease.token) == ""


def test_a_leaving_worker_tells_also_what_begins_just_now(bench: Bench) -> None:
    bench.keeper.leave_soon()
    lease = running(bench.store)
    bench.run(lease)
    bench.keeper.look()
    assert bench.slate.read_order(lease.token) == "leave"


def test_a_cordoned_gpu_is_listed_and_serves_nothing(bench: Bench) -> None:
    bench.slate.write_running(Running(pid=os.getpid(), build="b1"))
    bench.keeper.look()
    bench.store.order_gpu(GPU.name, GpuOrder("cordoned", "me", "dust"), op=op())
    bench.clock.advance(1.0)
    bench.keeper.look()
    (listed,) = bench.store.gpus()
    assert (bench.wants.queues, listed.queues, listed.build) == ((), (), "b1")
    bench.store.order_gpu(GPU.name, None, op=op())
    bench.clock.advance(1.0)
    bench.keeper.look()
    assert bench.store.gpus()[0].queues == QUEUES


@pytest.mark.parametrize(("wait_s", "order"), [(0.0, ""), (10.0, "drain")])
def test_a_draining_gpu_gives_its_job_up_at_the_deadline(bench: Bench, wait_s: float, order: str) -> None:
    lease = running(bench.store, lease_s=60)
    bench.run(lease)
    until = bench.clock.now + 10.0
    bench.store.order_gpu(GPU.name, GpuOrder("draining", "me", "dust", give_up_at=until), op=op())
    bench.clock.advance(wait_s)
    bench.keeper.look()
    assert bench.slate.read_order(lease.token) == order


def test_a_draining_gpu_without_deadline_lets_its_job_end(bench: Bench) -> None:
    lease = running(bench.store)
    bench.run(lease)
    bench.store.order_gpu(GPU.name, GpuOrder("draining", "me", "dust"), op=op())
    bench.keeper.look()
    assert bench.slate.read_order(lease.token) == ""


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


def test_what_is_desired_is_served_and_its_weights_are_asked_for(bench: Bench) -> None:
    bench.slate.write_running(Running(pid=os.getpid()))
    bench.store.desire({GPU.name: Desired(QUEUES, load="wan")}, op=op())
    bench.keeper.look()
    assert [wish.load for wish in bench.wants.wishes if wish] == ["wan"]
    assert bench.ordered == ["wan"]
    bench.slate.write_running(Running(pid=os.getpid(), resident=("wan",)))
    bench.clock.advance(1.0)
    bench.keeper.look()
    assert bench.wants.resident == ("wan",)


def test_a_cordoned_gpu_loads_nothing(bench: Bench) -> None:
    bench.slate.write_running(Running(pid=os.getpid()))
    bench.store.desire({GPU.name: Desired(QUEUES, load="wan")}, op=op())
    bench.store.order_gpu(GPU.name, GpuOrder("cordoned", "me", "dust"), op=op())
    bench.keeper.look()
    assert bench.ordered == []


def test_a_child_that_hangs_while_it_loads_is_killed(bench: Bench) -> None:
    bench.slate.write_running(Running(pid=os.getpid(), phase=LOADING))
    for _ in range(60):
        bench.keeper.look()
        bench.clock.advance(1.0)
    assert bench.alive
    bench.clock.advance(1.0)
    bench.keeper.look()
    assert not bench.alive


def test_how_long_steps_take_reaches_the_record(bench: Bench) -> None:
    lease = running(bench.store)
    bench.run(lease, step=3, phase="denoise", step_s=0.25)
    bench.keeper.look()
    assert bench.store.get(lease.job.id).step_s == 0.25
