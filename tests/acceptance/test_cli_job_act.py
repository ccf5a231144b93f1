"""``callsheet job cancel --erase``, ``requeue`` and ``preempt`` against a real Valkey; the worker is us."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from callsheet.records.jobs import Outcome
from callsheet.records.states import State
from callsheet.settings import load
from tests.support.by_hand import Hand
from tests.support.cli import Cli

SAID = ("--reason", "the disk was full", "--as", "ann@desk")


@pytest.fixture
def hand(cli: Cli) -> Hand:
    """A worker that the test plays."""
    return Hand(load(env=cli.env))


def until(what: Callable[[], bool], limit_s: float = 30.0) -> None:
    ends = time.monotonic() + limit_s
    while not what():
        assert time.monotonic() < ends, "it did not come"
        time.sleep(0.05)


def reasons(hand: Hand, job_id: str, kind: str) -> list[str]:
    return [event.reason for event in hand.store.events(job_id) if event.kind == kind]


def fail_at(hand: Hand, step: int) -> str:
    """A job that failed after its checkpoint at ``step`` (0: without one)."""
    job_id = hand.submit()
    lease = hand.claim(job_id)
    if step:
        hand.keep(lease, step)
    outcome = Outcome(State.FAILED, error_type="StorageError", error="full", step=step)
    assert hand.store.finish(job_id, lease.attempt, lease.token, outcome, op=f"end-{job_id}")
    return job_id


# -- requeue -------------------------------------------------------------------------------------------------


def test_a_failed_job_goes_on_from_its_checkpoint_under_its_id(cli: Cli, hand: Hand) -> None:
    job_id = fail_at(hand, 3)
    said = cli("job", "requeue", job_id, *SAID, "-o", "json")
    assert said.code == 0, said.err
    job = said.json["jobs"][0]
    assert (job["id"], job["state"], job["error"], job["crashes"]) == (job_id, "queued", None, 0)  # at once
    assert (job["checkpoint"]["step"], job["step"]) == (3, 3)
    assert reasons(hand, job_id, "requeued") == ["the disk was full, by ann@desk"]
    assert hand.store.published() == {job["queue"]: 1}


def test_from_start_gives_the_steps_up(cli: Cli, hand: Hand) -> None:
    job_id = fail_at(hand, 3)
    job = cli("job", "requeue", job_id, "--from-start", "-o", "json").json["jobs"][0]
    assert (job["state"], job["checkpoint"], job["step"]) == ("queued", None, 0)


def test_from_checkpoint_needs_one(cli: Cli, hand: Hand) -> None:
    without, with_one = fail_at(hand, 0), fail_at(hand, 2)
    said = cli("job", "requeue", without, with_one, "--from-checkpoint", "-o", "json")
    assert said.code == 6
    assert [job["state"] for job in said.json["jobs"]] == ["failed", "queued"]
    assert f"Job {without} has no checkpoint" in said.err
    assert "--from-start" in said.err


def test_only_failed_and_cancelled_jobs_are_requeued(cli: Cli, hand: Hand) -> None:
    done, waits, stopped = hand.submit(), hand.submit("waits"), hand.submit()
    hand.store.cancel(stopped, reason="", op="stop")
    hand.succeed(done, b"film")
    said = cli("job", "requeue", done, waits, stopped, stopped, "--as", "ann@desk", "-o", "json")
    assert said.code == 6
    states = {job["id"]: job["state"] for job in said.json["jobs"]}
    assert (states[done], states[stopped], len(states)) == ("succeeded", "queued", 3)
    assert f"Job {done} is succeeded" in said.err
    assert "Job waits is" in said.err
    assert reasons(hand, stopped, "requeued") == ["no reason given, by ann@desk"]


def test_nothing_is_requeued_when_one_id_is_wrong(cli: Cli, hand: Hand) -> None:
    job_id = fail_at(hand, 0)
    assert cli("job", "requeue", job_id, "nope").code == 3
    assert hand.store.get(job_id).state is State.FAILED


# -- preempt -------------------------------------------------------------------------------------------------


def test_a_running_job_is_told_to_yield(cli: Cli, hand: Hand) -> None:
    job_id = hand.submit(tier="pro")
    lease = hand.claim(job_id)
    said = cli("job", "preempt", job_id, "--reason", "a demo", "--as", "ann@desk", "-o", "json")
    assert said.code == 0, said.err
    assert said.json["job"]["state"] == "running"
    assert "t4-0@here" in said.err
    order = hand.store.renew(job_id, 1, lease.token, lease_s=60, step=2, steps=8, phase="denoise")
    assert order == "yield"
    assert reasons(hand, job_id, "ordered") == ["a demo, by ann@desk"]
    assert cli("job", "preempt", job_id).code == 0  # told again, it is the same order


def test_preempt_waits_until_the_attempt_has_ended(cli: Cli, hand: Hand) -> None:
    job_id = hand.submit()
    lease = hand.claim(job_id)
    call = cli.start("job", "preempt", job_id, "--wait", "--timeout", "50s", "-o", "json")
    until(lambda: hand.store.get(job_id).order == "yield")
    hand.keep(lease, 4)
    hand.hand_back(lease)
    out, err = call.communicate(timeout=50)
    assert call.returncode == 0, err
    job = json.loads(out)["job"]
    assert (job["checkpoint"]["step"], job["preemptions"]) == (4, 1)


def test_preempt_tells_when_the_attempt_cannot_yield(cli: Cli, hand: Hand) -> None:
    job_id = hand.submit()
    lease = hand.claim(job_id)
    call = cli.start("job", "preempt", job_id, "--timeout", "50s")
    until(lambda: hand.store.get(job_id).order == "yield")
    hand.store.decline(job_id, lease.attempt, lease.token, reason="steps vary", op="no")
    _, err = call.communicate(timeout=50)
    assert call.returncode == 6
    assert "cannot yield now" in err


def test_preempt_waits_no_longer_than_it_was_told(cli: Cli, hand: Hand) -> None:
    job_id = hand.submit()
    hand.claim(job_id)
    said = cli("job", "preempt", job_id, "--timeout", "0.2s", "-o", "json")
    assert (said.code, said.out) == (4, "")
    assert "The order stands" in said.error["message"]


def test_a_job_that_does_not_run_has_no_gpu_to_give_up(cli: Cli, hand: Hand) -> None:
    said = cli("job", "preempt", hand.submit(), "-o", "json")
    assert (said.code, said.out) == (6, "")
    assert "is pending: only a running job" in said.error["message"]


# -- erase ---------------------------------------------------------------------------------------------------


def files(cli: Cli) -> list[Path]:
    return [path for path in (cli.folder / "data").rglob("*") if path.is_file()]


def test_cancel_with_erase_leaves_neither_prompt_nor_film_nor_checkpoint(cli: Cli, hand: Hand) -> None:
    done, running = hand.submit(prompt="a secret cat"), hand.submit(prompt="a secret dog")
    hand.succeed(done, b"secret film")
    hand.keep(hand.claim(running), 2, data=b"secret latents")
    assert [path for path in files(cli) if b"secret" in path.read_bytes()]
    said = cli("job", "cancel", done, running, "--erase", "-o", "json")
    assert said.code == 0, said.err
    assert [job["state"] for job in said.json["jobs"]] == ["succeeded", "cancelled"]
    assert all(job["erased"] for job in said.json["jobs"])
    assert "secret" not in said.out + cli("job", "show", running).out
    assert [path for path in files(cli) if b"secret" in path.read_bytes()] == []
    assert set(hand.store.erasing()) == {done, running}  # the janitor looks once more
    assert cli("job", "cancel", done, "--erase").code == 0  # again is no fault


def test_an_erased_job_cannot_be_made_again(cli: Cli, hand: Hand) -> None:
    job_id = hand.submit()
    cli("job", "cancel", job_id, "--erase")
    said = cli("job", "requeue", job_id)
    assert said.code == 6
    assert "was erased" in said.err


def test_who_cancelled_is_kept(cli: Cli, hand: Hand) -> None:
    job_id = hand.submit()
    assert cli("job", "cancel", job_id, *SAID).code == 0
    assert reasons(hand, job_id, "cancelled") == ["the disk was full, by ann@desk"]


# -- looking -------------------------------------------------------------------------------------------------


def test_show_tells_of_the_attempts_that_ended(cli: Cli, hand: Hand) -> None:
    job_id = hand.submit()
    lease = hand.claim(job_id, worker="t4-7@there")
    hand.keep(lease, 5)
    hand.hand_back(lease, "yields to a pro job")
    attempt = cli("job", "show", job_id, "-o", "json").json["attempts_ended"][0]
    assert (attempt["number"], attempt["worker"], attempt["end"]) == (1, "t4-7@there", "handed-back")
    assert (attempt["from_step"], attempt["to_step"], attempt["gpu_s_useful"]) == (0, 5, 1.5)
    shown = cli("job", "show", job_id).out
    for text in ("0 -> 5", "yields to a pro job", "step 5, "):
        assert text in shown, text


def test_a_strict_job_waits_for_its_build(cli: Cli, hand: Hand) -> None:
    submitted = cli("job", "submit", "a", "--model", "tiny-wan", "--reproducible", "strict", "-o", "json")
    job = submitted.json["job"]
    assert job["request"]["reproducible"] == "strict"
    lease = hand.claim(job["id"])
    hand.keep(lease, 5)
    hand.hand_back(lease)
    shown = cli("job", "show", job["id"], "-o", "json").json
    assert (shown["job"]["state"], shown["job"]["waits_for_build"]) == ("held", "b1")
    assert "its build b1" in shown["waits_for"]
