"""What idle GPUs load."""

from __future__ import annotations

from callsheet.routing.idle import Queued, cold_starts, preloads
from callsheet.routing.seats import Seat
from tests.support.snapshots import job, lane, lanes, replicas, seat

SPECS = lanes(lane("wan", vram_gb=60.0, load_s=10.0), lane("ltx", vram_gb=60.0, load_s=10.0))
NEEDS = {"wan": "l40s"}


def started(fleet: list[Seat], waiting: int = 9, need: str = "l40s", mean_s: float = 20.0) -> list[str]:
    loads = cold_starts(fleet, replicas(fleet, SPECS), {"wan": Queued(waiting, mean_s)}, {"wan": need})
    return [one.gpu for one in loads]


def test_idle_gpus_load_for_jobs_that_would_wait_longer() -> None:
    assert started([seat(), seat(index=1, runs=job(), frees_s=30.0)]) == ["a100-0@node"]


def test_nobody_loads_when_a_gpu_of_the_lane_is_free_sooner() -> None:
    assert started([seat(), seat(index=1, runs=job(), frees_s=9.0)], waiting=1) == []
    assert started([seat(), seat(index=1, warm=["wan"])], waiting=1) == []


def test_no_more_gpus_load_than_jobs_wait() -> None:
    assert len(started([seat(index=n) for n in range(4)], waiting=2)) == 2
    assert started([seat()], waiting=0) == []


def test_busy_promised_and_loading_gpus_load_nothing() -> None:
    fleet = [seat(runs=job(of="ltx")), seat(index=1, promised=True), seat(index=2, loading="ltx")]
    assert started(fleet) == []


def test_a_gpu_that_could_not_run_the_jobs_does_not_load_for_them() -> None:
    assert started([seat("l40s", 0)], need="a100") == []


def test_the_gpu_that_loses_least_loads() -> None:
    fleet = [seat(index=0, warm=["ltx"]), seat(index=1)]
    counted = replicas(fleet, SPECS, {"a100": {"ltx": 1.0}})
    (load,) = cold_starts(fleet, counted, {"wan": Queued(1, 20.0)}, NEEDS)
    assert (load.gpu, load.evicts) == ("a100-1@node", ())
    assert load.reason.startswith("backfill: ")


def test_short_jobs_wait_for_the_second_round_of_a_gpu_of_their_lane() -> None:
    fleet = [seat(), seat(index=1, runs=job(), frees_s=1.0)]
    assert started(fleet, waiting=4, mean_s=2.0) == []
    assert started(fleet, waiting=6, mean_s=2.0) == ["a100-0@node"]  # the sixth would wait for 11 s


def test_needed_weights_are_pushed_out_only_for_more_than_both_loads() -> None:
    fleet = [seat(index=0, warm=["ltx"]), seat(index=1, runs=job(), frees_s=15.0)]
    counted = replicas(fleet, SPECS, {"a100": {"ltx": 1.0}})
    assert cold_starts(fleet, counted, {"wan": Queued(1, 20.0)}, NEEDS) == []  # 10 s and 10 s again
    (load,) = cold_starts(fleet, counted, {"wan": Queued(2, 20.0)}, NEEDS)
    assert load.evicts == ("ltx",)


def test_the_jobs_behind_the_first_one_would_wait_longer_too() -> None:
    assert started([seat(), seat(index=1, runs=job(), frees_s=1.0)], waiting=5) == ["a100-0@node"]


def loaded(fleet: list[Seat], targets: dict[str, float], cover: dict[str, float]) -> list[tuple[str, str]]:
    loads = preloads(fleet, replicas(fleet, SPECS, {"a100": targets}, cover), NEEDS)
    return [(one.gpu, one.lane) for one in loads]


def test_idle_gpus_load_what_the_fleet_lacks() -> None:
    fleet = [seat(), seat(index=1)]
    assert loaded(fleet, {"wan": 1.0}, {}) == [("a100-0@node", "wan")]
    assert loaded(fleet, {}, {"wan": 2.0}) == [("a100-0@node", "wan"), ("a100-1@node", "wan")]


def test_half_a_gpu_that_is_lacked_loads_nothing() -> None:
    assert loaded([seat()], {"wan": 0.5}, {}) == []


def test_a_preload_never_evicts_what_is_needed() -> None:
    assert loaded([seat(warm=["ltx"])], {"wan": 1.0, "ltx": 1.0}, {}) == []
    assert loaded([seat(warm=["ltx"])], {"wan": 1.0}, {"ltx": 1.0}) == []


def test_a_preload_evicts_what_is_in_excess_and_stops_where_it_is_not() -> None:
    fleet = [seat(index=n, warm=["ltx"]) for n in range(3)]
    assert loaded(fleet, {"wan": 3.0, "ltx": 1.0}, {}) == [("a100-0@node", "wan"), ("a100-1@node", "wan")]


def test_a_busy_gpu_preloads_nothing() -> None:
    assert loaded([seat(runs=job(of="ltx"))], {"wan": 1.0}, {}) == []
