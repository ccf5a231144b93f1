"""The GPUs as the policy sees them."""

from __future__ import annotations

from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Job
from callsheet.records.lanes import Desired
from callsheet.routing.estimates import Costs
from callsheet.routing.seats import Seat, take_seats
from tests.support.snapshots import NOW, gpu, job, lane, lanes

SPECS = lanes(lane("wan", load_s=10.0), lane("ltx", load_s=20.0))


def taken(one: Gpu, runs: Job | None = None, wish: Desired | None = None, *, promised: bool = False) -> Seat:
    jobs = {one.name: runs} if runs else {}
    wishes = {one.name: wish} if wish else {}
    names = [one.name] if promised else []
    (found,) = take_seats([one], jobs, names, wishes, SPECS, Costs(save_s=0.5), NOW)
    return found


def test_a_gpu_with_nothing_to_do_is_idle() -> None:
    found = taken(gpu(warm=["wan"]))
    assert (found.idle, found.warm, found.frees_s) == (True, frozenset({"wan"}), 0.0)


def test_a_promised_gpu_is_not_idle() -> None:
    assert not taken(gpu(), promised=True).idle


def test_a_running_job_has_the_weights_of_its_lane() -> None:
    found = taken(gpu(), job(of="wan", step=2, step_s=4.0, stepped_at=NOW - 1.0))
    assert (found.lane, found.warm, found.idle) == ("wan", frozenset({"wan"}), False)


def test_a_yield_takes_the_step_and_the_save() -> None:
    found = taken(gpu(), job(step=2, step_s=4.0, stepped_at=NOW - 1.0))
    assert (found.frees_s, found.yields_s) == (23.0, 3.5)


def test_an_idle_gpu_that_loads_is_free_when_its_weights_are_there() -> None:
    found = taken(gpu(warm=["wan"]), wish=Desired((), load="ltx", at=NOW - 5.0))
    assert (found.loading, found.idle, found.frees_s) == ("ltx", False, 15.0)


def test_a_load_that_is_done_is_over() -> None:
    found = taken(gpu(warm=["ltx"]), wish=Desired((), load="ltx", at=NOW - 5.0))
    assert (found.loading, found.idle, found.frees_s) == ("", True, 0.0)


def test_a_busy_gpu_loads_after_its_job() -> None:
    assert taken(gpu(), job(), Desired((), load="ltx", at=NOW)).loading == "ltx"
