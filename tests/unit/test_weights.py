"""When a worker is told to load weights."""

from __future__ import annotations

import pytest

from callsheet.records.lanes import Desired
from callsheet.workers.slate import LOADING, Running
from callsheet.workers.weights import AGAIN_S, WeightsOrder

WISH = Desired(("free.a100.wan",), load="wan", at=5.0)
IDLE = Running(pid=7)
BUSY = Running("film", 1, "token", pid=7)


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.fixture
def order(asked: list[str]) -> WeightsOrder:
    return WeightsOrder(asked.append)


def test_what_is_desired_is_asked_for_once(order: WeightsOrder, asked: list[str]) -> None:
    order.look(WISH, IDLE, 0.0)
    order.look(WISH, IDLE, 1.0)
    assert asked == ["wan"]


@pytest.mark.parametrize("wish", [None, Desired(("free.a100",)), Desired(("free.a100",), load="hunyuan")])
def test_nothing_is_asked_for_that_nobody_wants_or_that_is_there(
    order: WeightsOrder, asked: list[str], wish: Desired | None
) -> None:
    order.look(wish, Running(pid=7, resident=("hunyuan",)), 0.0)
    assert asked == []


def test_a_busy_worker_is_asked_once_for_each_attempt_so_that_the_order_stands_behind_it(
    order: WeightsOrder, asked: list[str]
) -> None:
    for now in range(20):
        order.look(WISH, BUSY, float(now))
    assert asked == ["wan"]
    order.look(WISH, Running("other", 1, "its token", pid=7), 20.0)  # a job was chosen for it meanwhile
    assert asked == ["wan", "wan"]


def test_an_order_that_was_lost_is_given_again(order: WeightsOrder, asked: list[str]) -> None:
    order.look(WISH, IDLE, 0.0)
    order.look(WISH, IDLE, AGAIN_S - 0.1)
    order.look(WISH, IDLE, AGAIN_S)
    assert asked == ["wan", "wan"]


def test_nothing_is_asked_for_while_it_loads(order: WeightsOrder, asked: list[str]) -> None:
    order.look(WISH, IDLE, 0.0)
    order.look(WISH, Running(pid=7, phase=LOADING), 60.0)
    assert asked == ["wan"]


def test_a_new_wish_is_asked_for_at_once(order: WeightsOrder, asked: list[str]) -> None:
    order.look(WISH, IDLE, 0.0)
    order.look(Desired(("free.a100.wan",), load="wan", at=6.0), IDLE, 1.0)
    assert asked == ["wan", "wan"]
