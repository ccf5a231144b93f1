"""Lane moves: GPUs that are to load other weights once their job has ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from callsheet.routing.moves import SOON_S, LaneMoves, holdings, less, take
from callsheet.routing.residency import Load
from callsheet.routing.seats import Seat
from callsheet.routing.snapshot import Memory
from tests.support.snapshots import job, lane, lanes, replicas, seat

SPECS = lanes(lane("wan", vram_gb=60.0), lane("ltx", vram_gb=60.0, load_s=10.0), lane("cog", vram_gb=10.0))
FLEET = [seat(index=n, runs=job(f"j{n}"), frees_s=10.0 - n) for n in range(10)]
NEEDS = {"ltx": "a100", "cog": "a100"}


def moves(
    fleet: Sequence[Seat] = FLEET,
    *,
    ltx: float = 5.0,
    cog: float = 0.0,
    waiting: int = 9,
    leaving: float = 9.0,
    of: str = "a100",
) -> list[Load]:
    aims = {of: {"ltx": ltx, "wan": 0.0, "cog": cog}}
    memory = Memory(targets=aims, moves=aims, leaves=[(of, ["wan"], leaving)])
    counted = replicas(fleet, SPECS, aims)
    return LaneMoves(memory, counted).decide(fleet, {"ltx": waiting, "cog": waiting}, NEEDS)


def test_the_gpus_that_end_soonest_move_and_say_why() -> None:
    assert moves()[0] == Load("a100-9@node", "ltx", ("wan",), "lane ltx lacks 5.0 GPUs of a100")
    assert [one.gpu for one in moves()] == ["a100-9@node", "a100-8@node"]


def test_a_small_fleet_moves_two_gpus_in_a_tick_and_a_large_one_two_in_a_hundred() -> None:
    large = [seat(index=n, runs=job(f"j{n}"), frees_s=1.0) for n in range(200)]
    assert len(moves()) == 2
    assert len(moves(large, ltx=50.0, waiting=99, leaving=99.0)) == 4


def test_gpus_that_are_busy_for_longer_are_not_ordered_yet() -> None:
    assert moves([seat(index=n, runs=job(f"j{n}"), frees_s=SOON_S + 1.0) for n in range(10)]) == []


def test_a_lane_that_no_gpu_has_gets_one_however_little_it_would_use() -> None:
    assert [one.lane for one in moves(ltx=0.3)] == ["ltx"]
    assert moves(ltx=0.01) == []
    assert moves([*FLEET, seat(index=10, runs=job("x", of="ltx"))], ltx=0.3) == []


def test_nothing_moves_for_a_lane_whose_jobs_do_not_wait() -> None:
    assert moves(waiting=0) == []


def test_half_a_gpu_is_not_worth_a_move() -> None:
    fleet = [*FLEET, seat(index=10, runs=job("x", of="ltx"))]  # one has it already
    assert moves(fleet, ltx=0.5) == []
    assert len(moves(fleet, ltx=0.9)) == 1


def test_only_gpus_whose_weights_are_to_leave_move() -> None:
    assert moves(leaving=0.0) == []
    assert len(moves(leaving=0.7)) == 1
    others = [seat(index=n, runs=job(f"j{n}", of="cog")) for n in range(10)]
    assert moves(others) == []


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
    assert [one.lane for one in moves(cog=1.0, ltx=3.0)] == ["ltx", "ltx"]
    assert [one.lane for one in moves(cog=1.0, ltx=0.9)] == ["cog", "ltx"]


def test_what_was_ordered_is_not_ordered_again() -> None:
    left = less({"a100": {"ltx": 2.0, "cog": 1.0}}, {"a100": ["ltx", "ltx", "wan"], "h100": ["cog"]})
    assert left == {"a100": {"ltx": 0.0, "cog": 1.0}}


def test_a_decision_is_counted() -> None:
    counted = replicas(FLEET, SPECS)
    take("a100-0@node", "a100", "ltx", ("wan",), counted, "because")
    assert (counted.of_lane["ltx"], counted.of_lane["wan"]) == (1, 9)


def test_weights_on_their_way_count_and_those_that_leave_do_not() -> None:
    fleet = [
        seat(warm=["wan"]),
        replace(seat(index=1, warm=["wan", "cog"], loading="ltx"), leaves=frozenset({"wan"})),
        seat("h100", 2, warm=["wan", "cog"]),
    ]
    assert holdings(fleet) == {
        "a100": {frozenset({"wan"}): 1, frozenset({"ltx", "cog"}): 1},
        "h100": {frozenset({"wan", "cog"}): 1},
    }
