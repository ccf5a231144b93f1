"""``callsheet explain`` against a real Valkey; workers and controllers are played by hand."""

from __future__ import annotations

import pytest

from callsheet.records.decisions import LOAD, SEAT, Account, Decision
from callsheet.records.gpus import GpuOrder
from callsheet.settings import load
from tests.support.by_hand import Hand
from tests.support.cli import Cli
from tests.support.jobs import op


@pytest.fixture
def hand(cli: Cli) -> Hand:
    """The workers that the test plays."""
    return Hand(load(env=cli.env))


def test_a_waiting_job_is_told_its_place_its_gpus_and_what_to_expect(cli: Cli, hand: Hand) -> None:
    hand.beat("t4-0@here", queues=("free.t4",))
    first, second = hand.submit(), hand.submit(tenant="other")
    hand.claim(hand.submit(tier="pro"), "t4-0@here")
    told = cli("explain", second, "-o", "json").json
    assert (told["state"], told["queue"], told["tier"], told["tenant"]) == (
        "pending", "free.t4", "free", "other"
    )  # fmt: skip
    assert told["place"]["jobs_before"] == told["place"]["tier_jobs_before"] == 1
    assert told["place"]["work_before_s"] == hand.store.get(first).work_s
    assert told["place"]["longest_wait_s"] == 3600.0
    assert [(one["gpu_class"], one["gpus"], one["lacks"]) for one in told["classes"]] == [("t4", 1, None)]
    (gpu,) = told["warm_gpus"]
    assert gpu["name"] == "t4-0@here"
    assert "runs pro job" in gpu["doing"]
    assert told["expected_wait_s"] >= 0
    why = "; ".join(told["why"])
    for text in (
        "it waits in backlog free.t4",
        "before it: 1 job of its backlog",
        "an estimate",
        "1 GPU has its weights",
    ):
        assert text in why, text
    shown = cli("explain", second).out
    for text in (second, "an estimate", "GPU classes", "GPUs with its weights"):
        assert text in shown, text


def test_decisions_that_named_it_are_told_with_their_reasons(cli: Cli, hand: Hand) -> None:
    job_id = hand.submit()
    hand.beat("t4-0@here", queues=("free.t4",))
    decisions = (
        Decision(SEAT, "t4-0@here is idle", gpus=("t4-0@here",), job=job_id),
        Decision(SEAT, "not about it", gpus=("t4-1@here",), job="other"),
        Decision(LOAD, "another lane", gpus=("t4-0@here",), lane="wan2.2-t2v-a14b"),
    )
    hand.store.keep_plan(Account(decisions).to_json(), op=op())
    told = cli("explain", job_id, "-o", "json").json
    assert [one["reason"] for one in told["decisions"]] == ["t4-0@here is idle"]
    assert "t4-0@here is idle" in cli("explain", job_id).out


def test_a_gpu_that_was_chosen_for_it_is_named_with_the_reason(cli: Cli, hand: Hand) -> None:
    job_id = hand.submit(tier="pro")
    hand.beat("t4-0@here")
    hand.store.assign(job_id, "direct.t4-0@here", reason="the only idle one", op=op())
    told = cli("explain", job_id, "-o", "json").json
    assert told["chosen_gpu"] == "t4-0@here"
    assert told["why"][0] == "t4-0@here was chosen for it and takes it next: the only idle one"


def test_a_running_job_says_where_since_when_and_how_long(cli: Cli, hand: Hand) -> None:
    hand.beat("t4-0@here")
    lease = hand.claim(hand.submit(), "t4-0@here")
    hand.keep(lease, 3)
    told = cli("explain", lease.job.id, "-o", "json").json
    assert told["why"][0].startswith("it runs at t4-0@here since ")
    assert "step 3 of 8" in told["why"][0]
    assert told["expected_end_s"] >= 0
    assert "an estimate" in told["why"][1]


def test_who_took_its_gpu_and_why_is_told(cli: Cli, hand: Hand) -> None:
    hand.beat("t4-0@here")
    lease = hand.claim(hand.submit(), "t4-0@here")
    hand.store.order(lease.job.id, 1, "yield", reason="pro job p needs it", op=op())
    told = cli("explain", lease.job.id, "-o", "json").json
    assert told["why"][1] == "it is told to yield at its next step: pro job p needs it"
    hand.keep(lease, 3)
    hand.hand_back(lease, "yielded at step 3")
    told = cli("explain", lease.job.id, "-o", "json").json
    assert told["preemptions"] == 1
    assert "it gave its GPU to other jobs once" in told["why"]
    assert [one["reason"] for one in told["left_gpus"]] == ["pro job p needs it", "yielded at step 3"]


def test_a_held_job_and_ended_ones_get_a_short_true_answer(cli: Cli, hand: Hand) -> None:
    done = hand.succeed(hand.submit(), b"film")
    failed = hand.fail(hand.submit(), "weights are missing")
    cancelled = hand.submit()
    hand.store.cancel(cancelled, reason="by ann", op=op())
    for job_id, text in (
        (done.id, "its film is stored"),
        (failed.id, "weights are missing"),
        (cancelled, "by ann"),
    ):
        told = cli("explain", job_id, "-o", "json").json
        assert len(told["why"]) == 1
        assert text in told["why"][0]
        assert (told["place"], told["classes"]) == (None, [])


def test_why_nobody_can_run_it_is_told(cli: Cli, hand: Hand) -> None:
    hand.beat("t4-0@here")
    job_id = hand.submit(model="wan2.1-t2v-1.3b")
    told = cli("explain", job_id, "-o", "json").json
    lacks = {one["gpu_class"]: one["lacks"] for one in told["classes"]}
    assert lacks["t4"].startswith("memory: the job needs ")
    assert told["expected_wait_s"] is None
    assert "nothing can be said of its start: no GPU that takes jobs can run it" in told["why"]
    assert "a worker of queue" in told["why"][0]


def test_a_cordoned_gpu_is_none_that_could_run_it(cli: Cli, hand: Hand) -> None:
    job_id = hand.submit()
    hand.beat("t4-0@here", queues=("free.t4",))
    hand.store.order_gpu("t4-0@here", GpuOrder("cordoned", "ann", "a fan is loud"), op=op())
    told = cli("explain", job_id, "-o", "json").json
    assert told["warm_gpus"] == []
    assert "callsheet gpu uncordon t4-0@here" in told["why"][0]


def test_an_unknown_job_is_not_found(cli: Cli) -> None:
    said = cli("explain", "nope", "-o", "json")
    assert (said.code, said.out) == (3, "")
    assert said.error["type"] == "JobNotFound"


def test_without_a_store_it_says_so(offline: Cli) -> None:
    assert offline("explain", "film").code == 5
