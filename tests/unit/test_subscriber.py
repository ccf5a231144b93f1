"""What a GPU's worker wants to serve."""

from __future__ import annotations

from collections.abc import Iterable

from callsheet.records.gpus import Gpu
from callsheet.records.lanes import Desired
from callsheet.settings import Settings
from callsheet.workers.subscriber import Subscriber
from tests.support.catalogs import built_in
from tests.support.fleet import gpu

LANE = "wan2.2-t2v-a14b"


def nobody() -> Iterable[Gpu]:
    raise AssertionError("the fleet is no concern of a worker that was told what to serve")


def test_what_is_desired_is_served_in_its_order() -> None:
    subscriber = Subscriber(gpu("a100"), built_in(), Settings())
    subscriber.look(Desired(("free.a100", "pro.a100")), (), nobody)
    assert subscriber.queues == ("free.a100", "pro.a100")


def test_without_a_wish_it_serves_all_that_it_covers_its_lanes_too() -> None:
    subscriber = Subscriber(gpu("a100"), built_in(), Settings())
    subscriber.look(None, (), lambda: [gpu("h100")])
    assert f"free.a100.{LANE}" in subscriber.queues
    assert not [queue for queue in subscriber.queues if ".h100" in queue]


def test_a_rest_ends_it_until_the_next_look() -> None:
    subscriber = Subscriber(gpu("a100"), built_in(), Settings())
    subscriber.look(Desired(("pro.a100",)), (), nobody)
    subscriber.rest()
    assert not subscriber.queues
    subscriber.look(Desired(("pro.a100",)), (), nobody)
    assert subscriber.queues == ("pro.a100",)


def test_a_lane_whose_weights_have_left_is_not_served_and_one_on_its_way_is() -> None:
    subscriber = Subscriber(gpu("a100"), built_in(), Settings())
    wish = Desired(("pro.a100.left", "pro.a100.here", "pro.a100.comes", "pro.a100"), load="comes")
    subscriber.look(wish, ("here", "a-small-model"), nobody)
    assert subscriber.queues == ("pro.a100.here", "pro.a100.comes", "pro.a100")
