"""Lane moves: GPUs that are to load other weights once their job has ended."""

from __future__ import annotations

from collections.abc import Sequence

from callsheet.routing.moves import lane_moves, take, warm_counts
from callsheet.routing.residency import Load
from callsheet.routing.seats import Seat
from tests.support.snapshots import job, lane, lanes, replicas, seat

SPECS = lanes(lane("wan", vram_gb=60.0), lane("ltx", vram_gb=60.0, load_s=10.0), lane("cog", vram_gb=10.0))
FLEET = [seat(index=n, runs=job(f"j{n}"), frees_s=60.0 - n) for n in range(10)]
NEEDS = {"ltx": "a100", "cog": "a100"}


def moves(
    fleet: Sequence[Seat] = FLEET,
    *,
    ltx: float = 5.0,
    waiting: int = 9,
    wan: float = 0.0,
    of: str = "a100",
) -> list[Load]:
    counted = replicas(fleet, SPECS, {of: {"ltx": ltx, "wan": wan}})
    return lane_moves(fleet, counted, {"ltx": waiting}, NEEDS)


def test_the_gpus_that_end_soonest_move_and_say_why() -> None:
    assert moves()[0] == Load("a100-9@node", "ltx", ("wan",), "lane ltx lacks 5.0 GPUs of a100")
    assert [one.gpu for one in moves()] == ["a100-9@node", "a100-8@node"]


def test_a_small_fleet_moves_two_gpus_in_a_tick_and_a_large_one_two_in_a_hundred() -> None:
    large = [seat(index=n, runs=job(f"j{n}")) for n in range(200)]
    assert len(moves()) == 2
    assert len(moves(large, ltx=50.0, waiting=99)) == 4


def test_nothing_moves_for_a_lane_whose_jobs_do_not_wait() -> None:
    assert moves(waiting=0) == []


def test_half_a_gpu_is_not_worth_a_move() -> None:
    assert moves(ltx=0.5) == []
    assert len(moves(ltx=0.9)) == 1


def test_nothing_moves_when_as_much_would_be_lacked_elsewhere() -> None:
    assert moves(wan=10.0) == []
    assert len(moves(wan=9.0)) == 1


def test_nothing_moves_to_a_class_that_does_not_run_the_waiting_jobs() -> None:
    small = [seat("l40s", n, runs=job(f"j{n}", need="l40s")) for n in range(4)]
    assert moves(small, of="l40s") == []


def test_gpus_that_load_or_are_promised_or_have_the_weights_are_left_alone() -> None:
    fleet = [
        seat(index=0, runs=job("a"), loading="cog"),
        seat(index=1, runs=job("b"), promised=True),
        seat(index=2, runs=job("c", of="ltx")),
    ]
    assert moves(fleet) == []


def test_the_lane_that_lacks_most_moves_first() -> None:
    counted = replicas(FLEET, SPECS, {"a100": {"cog": 1.0, "ltx": 3.0}})
    found = lane_moves(FLEET, counted, {"cog": 1, "ltx": 3}, NEEDS)
    assert [one.lane for one in found] == ["ltx", "ltx"]


def test_a_decision_is_counted() -> None:
    counted = replicas(FLEET, SPECS)
    take("a100-0@node", "a100", "ltx", ("wan",), counted, "because")
    assert (counted.of_lane["ltx"], counted.of_lane["wan"]) == (1, 9)


def test_what_is_on_its_way_counts_as_warm() -> None:
    fleet = [seat(warm=["wan"]), seat(index=1, loading="wan"), seat("h100", 2, warm=["wan", "cog"])]
    assert warm_counts(fleet) == {"a100": {"wan": 2}, "h100": {"wan": 1, "cog": 1}}
