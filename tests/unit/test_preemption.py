"""Who gives a GPU to whom."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Job
from callsheet.records.states import State
from callsheet.routing.preemption import Seat, preemptions
from tests.support.fleet import gpu
from tests.support.jobs import request


def job(name: str, tier: str = "free", *, created: float = 0.0, queue: str = "", **changes: Any) -> Job:
    fields: dict[str, Any] = {"step": 2, "steps": 8, "phase": "denoise", "state": State.RUNNING, **changes}
    return Job(
        id=name,
        request=request(tier=tier),
        need_gib=1.0,
        gpu_class="a100",
        queue=queue or f"{tier}.a100",
        created_at=created,
        **fields,
    )


def decided(waiting: list[Job], seats: list[Seat]) -> list[tuple[str, str, str]]:
    return [(one.victim.id, one.heir.id, one.gpu.name) for one in preemptions(waiting, seats)]


PRO = job("pro", "pro", state=State.QUEUED)
A100, OTHER = gpu("a100", 0), gpu("a100", 1)


def test_an_idle_gpu_means_nobody_yields() -> None:
    assert decided([PRO], [Seat(A100, job("free")), Seat(OTHER)]) == []


def test_a_waiting_pro_job_gets_the_gpu_of_a_free_one() -> None:
    assert decided([PRO], [Seat(A100, job("free"))]) == [("free", "pro", A100.name)]


def test_free_jobs_take_nothing_and_pro_jobs_give_nothing() -> None:
    assert decided([job("waits")], [Seat(A100, job("free"))]) == []
    assert decided([PRO], [Seat(A100, job("running-pro", "pro"))]) == []


def test_a_gpu_that_does_not_serve_the_queue_is_left_alone() -> None:
    big = job("big", "pro", queue="pro.h200")
    assert decided([big], [Seat(A100, job("free"))]) == []


def test_as_many_yield_as_wait_and_the_first_that_came_first() -> None:
    late, early = job("late", "pro", created=2.0), job("early", "pro", created=1.0)
    seats = [Seat(A100, job("a"))]
    assert decided([late, early], seats) == [("a", "early", A100.name)]
    assert len(decided([late, early], [*seats, Seat(OTHER, job("b"))])) == 2


def test_a_promised_gpu_is_given_to_nobody_else() -> None:
    assert decided([PRO], [Seat(A100, job("free"), promised=True)]) == []
    assert decided([PRO], [Seat(A100, None, promised=True), Seat(OTHER, job("free"))]) != []


def test_a_gpu_that_gets_free_anyway_is_waited_for() -> None:
    assert decided([PRO], [Seat(A100, job("free", order="yield")), Seat(OTHER, job("other"))]) == []


def test_near_its_end_a_job_is_left_alone() -> None:
    for near in (job("a", phase="decode", step=8), job("a", phase="store", step=8), job("a", step=7)):
        assert decided([PRO], [Seat(A100, near)]) == []


def test_the_cheapest_yields() -> None:
    often, fresh = job("often", preemptions=3), job("fresh")
    assert decided([PRO], [Seat(A100, often), Seat(OTHER, fresh)])[0][0] == "fresh"
    dear: Gpu = replace(gpu("h100"), queues=("pro.a100", "free.a100"))
    assert decided([PRO], [Seat(dear, job("on-h100")), Seat(A100, job("on-a100"))])[0][0] == "on-a100"
    assert decided([PRO], [Seat(A100, job("far", step=6)), Seat(OTHER, job("near", step=1))])[0][0] == "near"


def test_the_reason_is_in_words() -> None:
    (one,) = preemptions([PRO], [Seat(A100, job("free"))])
    assert one.reason == "pro job pro waits and no GPU that serves pro.a100 is idle"
