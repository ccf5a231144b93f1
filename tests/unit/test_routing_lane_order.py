"""Which lane a GPU takes up next."""

from __future__ import annotations

from callsheet.routing.lane_order import SOON_S, LaneOrder
from callsheet.routing.seats import Seat
from callsheet.routing.snapshot import Snapshot
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
