"""What is shown of jobs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from callsheet.cli.attempt_view import attempt_document, attempts
from callsheet.cli.job_view import event_document, history, job_document, job_facts, job_list
from callsheet.cli.output import to_json
from callsheet.records.jobs import AttemptRecord, Checkpoint, Event, Job, Spent
from callsheet.records.states import State
from tests.support.jobs import request

T0 = 1_700_000_000.0
WAITING = Job(
    "j1", State.PENDING, request(prompt="a cat\non the moon"), 1.5, "h100", "free.h100", created_at=T0
)
RUNNING = replace(
    WAITING,
    state=State.RUNNING,
    attempt=2,
    preemptions=1,
    worker="h100-0@node",
    phase="denoise",
    step=4,
    steps=16,
    started_at=T0 + 5,
    claimed_at=T0 + 60,
)
DONE = replace(
    RUNNING, state=State.SUCCEEDED, step=16, ended_at=T0 + 90, film="file:///f.mp4", gpu_s_useful=30.12345
)
FAILED = replace(DONE, state=State.FAILED, film="", error_type="ModelError", error="no folder")


def facts(job: Job, *, waits_for: str = "", now: float = T0 + 100) -> dict[str, str]:
    return {name: value for name, value in job_facts(job, waits_for=waits_for, now=now).rows}  # noqa: C416  rows have any length


def test_what_is_not_yet_there_is_null() -> None:
    document = job_document(WAITING)
    for name in ("worker", "phase", "started_at", "ended_at", "wait_s", "run_s", "film_url", "error"):
        assert document[name] is None, name
    assert document["request"]["deadline_at"] is None
    assert document["steps"] == 8


def test_a_finished_job_has_times_and_costs_in_seconds() -> None:
    document = job_document(DONE)
    assert (document["wait_s"], document["run_s"], document["gpu_s_useful"]) == (5.0, 30.0, 30.123)
    assert document["progress"] == 1.0
    assert document["request"]["length_s"] == 2.125


def test_keys_are_the_same_for_every_job_and_values_are_json() -> None:
    documents = [job_document(job) for job in (WAITING, RUNNING, DONE, FAILED)]
    assert len({tuple(document) for document in documents}) == 1
    assert json.loads(to_json({"jobs": documents}))["jobs"][3]["error"] == "no folder"


def test_a_list_has_a_line_for_each_job() -> None:
    table = job_list([WAITING, DONE])
    rows: list[dict[str, Any]] = [
        dict(zip((column.name for column in table.columns), row, strict=True)) for row in table.rows
    ]
    assert (rows[0]["wait"], rows[0]["run"], rows[0]["worker"]) == ("-", "-", "-")
    assert (rows[1]["steps"], rows[1]["wait"], rows[1]["run"]) == ("16/16", "5.0 s", "30 s")
    assert job_list([]).empty == "no jobs"


def test_facts_leave_out_what_does_not_apply() -> None:
    shown = facts(WAITING, waits_for="a worker")
    assert shown["waits for"] == "a worker"
    assert shown["waited"] == "1 min 40 s so far"
    assert not {"film", "error", "worker", "attempts", "ran", "GPU time", "ended"} & set(shown)


def test_facts_of_a_running_job() -> None:
    shown = facts(RUNNING)
    assert shown["worker"] == "h100-0@node (denoise)"
    assert shown["attempts"] == "2 (0 lost with their worker, 1 preempted)"
    assert shown["waited"] == "5.0 s"
    assert shown["ran"] == "40 s so far"


def test_facts_of_ended_jobs() -> None:
    assert facts(DONE)["film"] == "file:///f.mp4"
    assert facts(DONE)["GPU time"] == "30.1 s useful, 0.0 s wasted, 0.0 s loading weights"
    assert facts(FAILED)["error"] == "ModelError: no folder"
    expired = replace(WAITING, state=State.EXPIRED, ended_at=T0 + 30)
    assert facts(expired)["waited"] == "30 s, never started"


def test_history() -> None:
    event = Event(T0, "claimed", 1, "h100-0@node", "")
    assert event_document(event) == {
        "at": T0,
        "kind": "claimed",
        "attempt": 1,
        "worker": "h100-0@node",
        "reason": None,
    }
    assert list(history([event]).rows[0])[1:] == ["claimed", "1", "h100-0@node", "-"]


KEPT = replace(
    RUNNING,
    checkpoint=Checkpoint(4, "checkpoints/j1/a", "abc", 2_500_000),
    from_step=2,
    restarts=1,
    exact=False,
)


def test_kept_steps_and_what_became_of_them() -> None:
    shown = facts(KEPT)
    assert shown["checkpoint"] == "step 4, 2.5 MB; the newest attempt began at step 2"
    assert shown["restarts"].startswith("1: kept steps were given up")
    assert "close, not identical: resumed on another build" in shown["exact"]
    assert not {"checkpoint", "restarts", "exact", "erased", "promise"} & set(facts(RUNNING))
    document = job_document(KEPT)
    assert document["checkpoint"] == {
        "step": 4,
        "size_bytes": 2_500_000,
        "key": "checkpoints/j1/a",
        "format": 1,
    }
    assert (document["exact"], document["from_step"], document["restarts"]) == (False, 2, 1)
    assert (job_document(RUNNING)["exact"], job_document(RUNNING)["checkpoint"]) == (True, None)


def test_the_build_is_told_only_while_the_job_waits_for_it() -> None:
    strict = replace(RUNNING, build="b1", request=request(reproducible="strict"))
    assert job_document(strict)["waits_for_build"] is None
    assert job_document(replace(strict, state=State.HELD))["waits_for_build"] == "b1"
    assert job_document(strict)["request"]["reproducible"] == "strict"
    assert facts(strict)["promise"] == "reproducible=strict"


def test_an_erased_job_says_so() -> None:
    erased = replace(DONE, erased=True, film="", request=request(prompt=""))
    assert job_document(erased)["erased"] is True
    assert "on request" in facts(erased)["erased"]
    assert "prompt" not in facts(erased)


def test_attempts_that_ended() -> None:
    spent = Spent(useful=1.23456, wasted=0.5, loading=2.0)
    one = AttemptRecord(2, "h100-0@node", T0, T0 + 65, "handed-back", "yields", 2, 6, spent)
    document = attempt_document(one)
    assert (document["number"], document["from_step"], document["to_step"]) == (2, 2, 6)
    assert (document["gpu_s_useful"], document["gpu_s_wasted"], document["gpu_s_loading"]) == (
        1.235,
        0.5,
        2.0,
    )
    assert attempt_document(replace(one, reason=""))["reason"] is None
    row = attempts([one]).rows[0]
    assert list(row) == [
        "2",
        "h100-0@node",
        "2 -> 6",
        "handed-back",
        "1 min 05 s",
        "1.2",
        "0.5",
        "2.0",
        "yields",
    ]
