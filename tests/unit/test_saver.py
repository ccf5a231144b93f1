"""Background saves: when one begins, and what a failing one does."""

from __future__ import annotations

import threading

import pytest

from callsheet.errors import Fenced, StorageError
from callsheet.workers.interval import interval_s
from callsheet.workers.replay import NotReplayable, Snapshot
from callsheet.workers.saver import SaveCosts, Saver
from tests.support.clock import Clock

pytestmark = pytest.mark.torch


class Desk:
    """A saver with a clock of its own; what was saved lies in ``saved``."""

    def __init__(self, *, fixed_s: float = 10.0, fault: Exception | None = None) -> None:
        self.clock = Clock()
        self.saved: list[tuple[int, float]] = []
        self.threads: set[str] = set()
        self.hold = threading.Event()
        self.hold.set()
        self.fault = fault
        self.taken = 0
        self.costs = SaveCosts({})
        self.saver = Saver(
            self.save,
            model="wan",
            costs=self.costs,
            mean_s_between_losses=86_400.0,
            fixed_interval_s=fixed_s,
            clock=self.clock,
        )

    def save(self, snapshot: Snapshot, useful_s: float) -> None:
        self.threads.add(threading.current_thread().name)
        self.hold.wait(10)
        if self.fault is not None:
            raise self.fault
        self.saved.append((snapshot.step, useful_s))

    def step(self, number: int) -> None:
        def take() -> Snapshot:
            self.taken += 1
            return Snapshot({}, {}, number)

        self.saver.step_ended(take, lambda: number * 2.0)


def test_a_save_begins_when_the_interval_has_passed_and_not_before() -> None:
    desk = Desk()
    for step in range(1, 31):
        desk.clock.advance(1.0)
        desk.step(step)
        desk.saver.close()
    assert desk.saved == [(10, 20.0), (20, 40.0), (30, 60.0)]
    assert desk.taken == 3  # nothing is copied for nothing


def test_the_denoising_thread_does_not_save() -> None:
    desk = Desk()
    desk.clock.advance(11)
    desk.step(1)
    desk.saver.close()
    assert desk.threads == {"callsheet-saver"}


def test_one_save_at_a_time() -> None:
    desk = Desk()
    desk.hold.clear()
    for step in (1, 2, 3):
        desk.clock.advance(11)
        desk.step(step)
    desk.hold.set()
    desk.saver.close()
    assert desk.saved == [(1, 2.0)]


@pytest.mark.parametrize("fault", [StorageError("full"), Fenced("ghost"), ZeroDivisionError("bug")])
def test_a_save_that_fails_disturbs_nothing_and_the_next_one_is_tried(fault: Exception) -> None:
    desk = Desk(fault=fault)
    desk.clock.advance(11)
    desk.step(1)
    desk.saver.close()
    desk.fault = None
    desk.clock.advance(11)
    desk.step(2)
    desk.saver.close()
    assert desk.saved == [(2, 4.0)]


def test_a_pipeline_that_cannot_be_saved_is_asked_once() -> None:
    desk, asked = Desk(), []

    def take() -> Snapshot:
        asked.append(1)
        raise NotReplayable("step caches")

    for _ in range(3):
        desk.clock.advance(11)
        desk.saver.step_ended(take, lambda: 0.0)
    assert len(asked) == 1


def test_the_interval_follows_the_measured_cost() -> None:
    desk = Desk(fixed_s=0.0)
    guessed = desk.saver.interval_s
    desk.costs.by_model["wan"] = 5.0
    assert desk.saver.interval_s == interval_s(5.0, 86_400.0) > guessed


def test_the_cost_of_a_save_is_remembered_for_the_next_job() -> None:
    desk = Desk()
    desk.clock.advance(11)
    desk.hold.clear()
    desk.step(1)
    desk.clock.advance(0.5)
    desk.hold.set()
    desk.saver.close()
    assert desk.costs.of("wan") == pytest.approx(0.5)
