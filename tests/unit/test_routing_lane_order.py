"""Which lane a GPU takes up next."""

from __future__ import annotations

from dataclasses import replace

from callsheet.routing.lane_order import SOON_S, LaneOrder
from callsheet.routing.seats import Seat
from callsheet.routing.snapshot import Snapshot
from callsheet.routing.tiers import FREE, PRO
from tests.support.snapshots import job, lane, lanes, seat, snapshot, waiting

SPECS = lanes(lane("wan"), lane("ltx"))
BOTH = {"wan", "ltx"}


def ending(count: int, frees_s: float) -> list[Seat]:
    """GPUs with both weights whose wan job ends one after the other."""
    return [
        seat(index=n, runs=job(f"j{n}", of="wan"), frees_s=frees_s + n / 10, warm=["wan", "ltx"])
        for n in range(count)
    ]


def first(picture: Snapshot, targets: dict[str, dict[str, float]]) -> list[str]:
    """The lane that each GPU looks into first, free jobs only."""
    order = LaneOrder(picture, targets)
    queues = [[q for q in order.queues(one, BOTH) if q.startswith("free")] for one in picture.seats]
    return [names[0].split(".")[2] for names in queues]


def test_gpus_that_end_soon_share_the_lanes_by_what_each_lacks() -> None:
    picture = snapshot(
        ending(4, 0.1), [waiting("free.a100.wan", 9), waiting("free.a100.ltx", 9)], specs=SPECS
    )
    chosen = first(picture, {"a100": {"wan": 2.0, "ltx": 2.0}})
    assert sorted(chosen) == ["ltx", "ltx", "wan", "wan"]


def test_a_lane_without_jobs_is_nobodys_next() -> None:
    picture = snapshot(
        ending(2, 0.1), [waiting("free.a100.wan", 9), waiting("free.a100.ltx", 0)], specs=SPECS
    )
    assert first(picture, {"a100": {"ltx": 9.0}}) == ["wan", "wan"]


def test_gpus_that_are_busy_for_longer_keep_one_order() -> None:
    queued = [waiting("free.a100.wan", 9), waiting("free.a100.ltx", 9)]
    chosen = first(snapshot(ending(4, SOON_S + 1.0), queued, specs=SPECS), {"a100": {"ltx": 1.0, "wan": 9.0}})
    assert len(set(chosen)) == 1


def test_tier_by_tier_its_own_class_first_then_those_that_jobs_were_placed_on() -> None:
    queued = [waiting("pro.l40s.wan", 1), waiting("pro.a100.wan", 1), waiting("free.h200.ltx", 1)]
    one = seat(runs=job(), frees_s=60.0, warm=["wan", "ltx"])
    assert LaneOrder(snapshot([one], queued, specs=SPECS), {}).queues(one, BOTH) == (
        "pro.a100.wan",
        "pro.l40s.wan",
        "pro.a100.ltx",
        "free.a100.ltx",
        "free.a100.wan",
    )


def test_the_oldest_head_comes_first_among_lanes_that_lack_nothing() -> None:
    old = waiting("free.a100.wan", 1, key=0.0)
    queued = [waiting("free.a100.ltx", 1, key=100.0), old]
    one = seat(runs=job(), frees_s=60.0, warm=["wan", "ltx"])
    queues = LaneOrder(snapshot([one], queued, specs=SPECS), {}).queues(one, BOTH)
    assert [name for name in queues if name.startswith("free")] == ["free.a100.wan", "free.a100.ltx"]


def test_a_tiers_guaranteed_share_is_served_the_other_way_round() -> None:
    tiers = (PRO, replace(FREE, share=0.5))
    fleet = [seat(index=n, runs=job(f"j{n}", tier=t), frees_s=60.0) for n, t in enumerate(["free", "pro"])]
    picture = replace(snapshot(fleet, [waiting("free.a100.wan", 9)], specs=SPECS), tiers=tiers)
    order = LaneOrder(picture, {})
    assert [order.queues(one, {"wan"})[0] for one in fleet] == ["free.a100.wan", "pro.a100.wan"]


def test_the_shared_lane_has_no_place_of_its_own_before_the_others() -> None:
    specs = lanes(lane("wan"), lane("", vram_gb=0.0, load_s=0.0))
    queued = [waiting("free.a100.wan", 1, key=0.0), waiting("free.a100", 1, key=100.0)]
    one = seat(runs=job(), frees_s=60.0, warm=["wan", ""])
    queues = LaneOrder(snapshot([one], queued, specs=specs), {}).queues(one, {"wan", ""})
    assert [name for name in queues if name.startswith("free")] == ["free.a100.wan", "free.a100"]
