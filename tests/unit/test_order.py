"""The order in which a worker looks into its queues."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from callsheet.order import SubscriptionOrder


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = SubscriptionOrder.wanted
    yield
    SubscriptionOrder.wanted = before


def test_the_subscriptions_order_wins_over_the_order_of_joining() -> None:
    SubscriptionOrder.wanted = ("pro.h100", "pro.a100", "free.h100", "free.a100")
    order = SubscriptionOrder()
    order.update(["free.a100", "pro.a100", "free.h100", "pro.h100"])
    assert order.consume(4) == ["pro.h100", "pro.a100", "free.h100", "free.a100"]


def test_the_order_stays_after_a_queue_was_served() -> None:
    SubscriptionOrder.wanted = ("pro.h100", "free.h100")
    order = SubscriptionOrder()
    order.update({"free.h100", "pro.h100"})
    order.rotate("pro.h100")
    assert order.consume(2) == ["pro.h100", "free.h100"]


def test_unnamed_queues_come_last_and_in_a_fixed_order() -> None:
    SubscriptionOrder.wanted = ("pro.h100",)
    order = SubscriptionOrder()
    order.update(["z", "pro.h100", "a"])
    assert order.consume(3) == ["pro.h100", "a", "z"]


def test_a_set_of_queues_has_the_same_order_each_time() -> None:
    SubscriptionOrder.wanted = tuple(f"q{i}" for i in range(20))
    order = SubscriptionOrder()
    order.update({f"q{i}" for i in range(20)})
    assert order.consume(20) == [f"q{i}" for i in range(20)]
