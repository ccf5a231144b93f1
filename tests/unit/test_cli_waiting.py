"""Why a job waits."""

from __future__ import annotations

from dataclasses import replace

from callsheet.cli.waiting import waits_for
from callsheet.records.jobs import Job
from callsheet.records.states import State
from tests.support.fleet import gpu
from tests.support.jobs import request

PENDING = Job("j1", State.PENDING, request(), 60.0, "a100", "free.a100")
A100, L4 = gpu("a100"), gpu("l4")
BUSY = replace(A100, name="a100-1@node", job_id="other")


def test_without_workers_it_says_what_to_start() -> None:
    text = waits_for(PENDING, [], ahead=0)
    assert "none is alive" in text
    assert "60.0 GiB, class a100 or larger" in text
    assert "callsheet worker" in text


def test_workers_of_other_queues_are_named() -> None:
    text = waits_for(PENDING, [L4, L4], ahead=0)
    assert "free.a100" in text
    assert "2 x l4" in text


def test_gpus_that_could_load_its_model_are_counted() -> None:
    cold = replace(A100, queues=("free.a100.ltx",))
    text = waits_for(PENDING, [cold, replace(cold, name="a100-1@node"), L4], ahead=0)
    assert text == "a GPU that loads its model: 2 GPUs could (`callsheet explain j1`)"


def test_its_place_and_the_workers_that_will_take_it() -> None:
    assert waits_for(PENDING, [A100, BUSY, L4], ahead=3) == (
        "3 jobs before it; 2 workers of queue free.a100, 1 free"
    )
    assert "first of its queue" in waits_for(PENDING, [A100], ahead=0)
    assert "many jobs" in waits_for(PENDING, [A100], ahead=None)


def test_a_published_ticket_waits_for_a_free_worker() -> None:
    job = replace(PENDING, state=State.QUEUED)
    assert waits_for(job, [BUSY], ahead=None) == "the next free one of 1 worker of queue free.a100, 0 free"


def test_a_held_job_waits_for_its_time_or_for_an_operator() -> None:
    held = replace(PENDING, state=State.HELD)
    assert "operator" in waits_for(held, [A100], ahead=None)
    timed = replace(held, request=request(not_before=1_700_000_000.0))
    assert "2023-11-1" in waits_for(timed, [A100], ahead=None)


SHUT = replace(A100, queues=())  # as a cordoned worker registers


def test_cordoned_workers_are_named_and_not_counted() -> None:
    text = waits_for(PENDING, [SHUT, L4], ahead=0, orders={SHUT.name})
    assert "1 worker is cordoned or drained" in text
    assert "callsheet gpu uncordon a100-0@node" in text
    assert text.startswith("a worker of queue free.a100 that takes jobs")
    other = replace(SHUT, name="a100-1@node")
    both = waits_for(PENDING, [SHUT, other], ahead=0, orders={SHUT.name, other.name})
    assert "are all cordoned" in both
    assert "uncordon a100-0@node a100-1@node" in both
    assert "1 worker of queue" in waits_for(PENDING, [SHUT, BUSY], ahead=0, orders={SHUT.name})
    assert "1 worker of queue" in waits_for(PENDING, [A100, BUSY], ahead=0, orders={BUSY.name})


def test_a_cordoned_worker_that_is_too_small_is_no_reason() -> None:
    assert "uncordon" not in waits_for(PENDING, [replace(L4, queues=())], ahead=0, orders={L4.name})


def test_a_strict_job_waits_for_its_build() -> None:
    strict = replace(PENDING, state=State.HELD, build="b1", step=5, request=request(reproducible="strict"))
    nobody = waits_for(strict, [A100], ahead=None)
    assert "a worker of its build b1 (reproducible=strict): none is alive" in nobody
    assert (
        "give its 5 steps up: `callsheet job cancel j1`, then `callsheet job requeue j1 --from-start`"
        in nobody
    )
    same = [replace(gpu, build="b1") for gpu in (A100, BUSY)]
    assert waits_for(strict, same, ahead=None) == "2 workers of its build b1 (reproducible=strict), 1 free"
    shut = waits_for(strict, [replace(SHUT, build="b1")], ahead=None, orders={SHUT.name})
    assert "callsheet gpu uncordon a100-0@node" in shut


def test_other_jobs_wait_for_nothing() -> None:
    for state in (State.RUNNING, State.SUCCEEDED, State.FAILED, State.CANCELLED, State.EXPIRED):
        assert waits_for(replace(PENDING, state=state), [], ahead=None) == ""
