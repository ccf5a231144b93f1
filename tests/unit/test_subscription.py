"""Which queues a worker serves that nobody has told what to serve."""

from __future__ import annotations

from callsheet.routing.classes import KNOWN
from callsheet.routing.subscription import subscribe

LANE = "wan2.2-t2v-a14b"


def test_pro_before_free_own_class_first_then_from_large_to_small() -> None:
    assert subscribe("h100", 79, classes=["t4", "a100", "h100", "h200", "l40s"]) == (
        "pro.h100",
        "pro.a100",
        "pro.l40s",
        "pro.t4",
        "free.h100",
        "free.a100",
        "free.l40s",
        "free.t4",
    )


def test_an_a100_never_serves_h100() -> None:
    assert subscribe("a100", 80, classes=["h100", "a100"]) == ("pro.a100", "free.a100")


def test_a_lane_stands_before_the_shared_queue_of_its_class() -> None:
    lanes = [("a100", LANE), ("h100", LANE), ("h100", "hunyuanvideo"), ("h200", LANE)]
    assert subscribe("h100", 80, classes=["h100", "a100"], lanes=lanes, tiers=("pro",)) == (
        "pro.h100.hunyuanvideo",
        f"pro.h100.{LANE}",
        "pro.h100",
        f"pro.a100.{LANE}",
        "pro.a100",
    )


def test_its_own_class_is_served_even_when_nobody_named_it() -> None:
    assert subscribe("t4", 15, classes=[]) == ("pro.t4", "free.t4")
    assert subscribe("rtx3090", 24, classes=KNOWN) == ("pro.rtx3090", "free.rtx3090")


def test_a_part_of_a_card_serves_what_it_has_the_memory_for() -> None:
    queues = subscribe("h100", 40, classes=KNOWN, tiers=("pro",))
    assert queues == ("pro.a100-40g", "pro.a10g", "pro.l4", "pro.rtx4090", "pro.t4")
    assert subscribe("h100", 10, classes=KNOWN) == ()
