"""What is shown of GPUs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from callsheet.cli.gpu_view import Seen, gpu_document, gpu_list, see
from callsheet.cli.output import to_json
from callsheet.records.gpus import GpuOrder
from callsheet.records.jobs import Job
from callsheet.records.states import State
from tests.support.fleet import gpu
from tests.support.jobs import request

NOW = 1_700_000_000.0
IDLE = replace(gpu("a100"), seen_at=NOW - 2)
BUSY = replace(IDLE, job_id="j1", step=3, steps=8)
CORDONED = GpuOrder("cordoned", "ann@desk", "fan", since=NOW - 60)
DRAINING = replace(CORDONED, action="draining")


@pytest.mark.parametrize(
    ("found", "order", "state"),
    [
        (IDLE, None, "idle"),
        (BUSY, None, "running"),
        (IDLE, CORDONED, "cordoned"),
        (BUSY, CORDONED, "cordoned"),
        (BUSY, DRAINING, "draining"),
        (IDLE, DRAINING, "drained"),
        (None, DRAINING, "gone"),
    ],
)
def test_states(found: object, order: GpuOrder | None, state: str) -> None:
    assert Seen("g", found, order).state == state  # type: ignore[arg-type]


def test_those_that_are_alive_and_those_that_have_an_order() -> None:
    seen = see([IDLE], {"a@away": CORDONED}, [])
    assert [(one.name, one.state) for one in seen] == [("a100-0@node", "idle"), ("a@away", "gone")]
    assert [one.name for one in see([IDLE], {}, [], ["x@y", IDLE.name])] == ["x@y", IDLE.name]


def test_a_job_that_began_after_the_heartbeat_is_seen() -> None:
    began = Job("j2", State.RUNNING, request(), 1.0, "a100", "free.a100", worker=IDLE.name, step=1, steps=8)
    seen = see([IDLE], {IDLE.name: DRAINING}, [began])[0]
    assert (seen.state, seen.gpu and seen.gpu.job_id, seen.gpu and seen.gpu.step) == ("draining", "j2", 1)


def test_documents_have_the_same_keys_and_are_json() -> None:
    documents = [gpu_document(one, now=NOW) for one in see([BUSY], {"a@away": CORDONED}, [])]
    assert len({tuple(document) for document in documents}) == 1
    gone, busy = json.loads(to_json({"gpus": documents}))["gpus"][::-1]
    assert (busy["job_id"], busy["step"], busy["seen_ago_s"], busy["order"]) == ("j1", 3, 2.0, None)
    assert (gone["gpu_class"], gone["job_id"], gone["seen_at"], gone["resident"]) == (None, None, None, [])


def told(order: GpuOrder) -> str:
    return gpu_list([Seen("g", BUSY, order)], now=NOW).rows[0][-1]


def test_an_order_says_who_why_since_when_and_what_becomes_of_the_job() -> None:
    assert told(CORDONED) == "cordoned: fan, by ann@desk 1 min 00 s ago"
    assert told(DRAINING).endswith("ago; its job may end")
    assert told(replace(DRAINING, give_up_at=NOW + 90)).endswith("; its job is handed back in 1 min 30 s")
    assert told(replace(DRAINING, give_up_at=NOW - 1)).endswith("; its job is handed back now")
    drained = gpu_list([Seen("g", IDLE, DRAINING)], now=NOW).rows[0][-1]
    assert drained == "draining: fan, by ann@desk 1 min 00 s ago"


def test_an_empty_fleet_says_what_to_do() -> None:
    assert "callsheet worker" in gpu_list([], now=NOW).empty
