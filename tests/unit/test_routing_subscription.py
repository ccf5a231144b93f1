"""The order in which a GPU looks into its queues."""

from __future__ import annotations

from callsheet.routing.subscription import ordered

NEEDS = {("pro", "wan"): ["l40s", "a100"], ("free", "ltx"): ["l40s"]}


def queues(ranks: dict[tuple[str, str], float], tiers: tuple[str, ...] = ("pro", "free")) -> tuple[str, ...]:
    return ordered(
        "a100",
        {"wan", "ltx"},
        tiers=tiers,
        needs=lambda tier, lane: NEEDS.get((tier, lane), []),
        rank=lambda tier, lane: (ranks.get((tier, lane), 0.0),),
    )


def test_tier_by_tier_then_the_lowest_rank_then_its_own_class_first() -> None:
    assert queues({("pro", "ltx"): 1.0, ("free", "wan"): 1.0}) == (
        "pro.a100.wan",
        "pro.l40s.wan",
        "pro.a100.ltx",
        "free.a100.ltx",
        "free.l40s.ltx",
        "free.a100.wan",
    )


def test_lanes_alike_stand_by_name() -> None:
    assert queues({}, ("free",)) == ("free.a100.ltx", "free.l40s.ltx", "free.a100.wan")


def test_tiers_may_be_turned_round() -> None:
    assert [queue.split(".")[0] for queue in queues({}, ("free", "pro"))][:3] == ["free"] * 3


def test_no_queue_stands_twice() -> None:
    assert len(set(queues({}))) == len(queues({}))


def test_a_gpu_without_lanes_serves_nothing() -> None:
    assert ordered("a100", [], tiers=("pro",), needs=lambda *_: [], rank=lambda *_: ()) == ()
