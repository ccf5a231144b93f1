"""What a ticket starts, told apart: what it runs, what it drops, and what it leaves to a newer worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from celery.exceptions import Ignore, Reject

from callsheet.records.jobs import Ticket
from callsheet.records.states import State
from callsheet.tasks import ticket as module
from callsheet.tasks.ticket import UNKNOWN, attempt, set_performer

QUEUE = "pro.a100"


@dataclass
class Desk:
    """Answers as it is told, and keeps what came in and what went out."""

    answer: State | str = State.SUCCEEDED
    performed: list[Ticket] = field(default_factory=list)
    published: list[dict[str, Any]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def perform(self, ticket: Ticket) -> State | str:
        self.performed.append(ticket)
        return self.answer

    def preload(self, lane: str) -> str:
        return f"loaded {lane}"


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A worker's process without worker, broker and GPU."""
    desk = Desk()
    set_performer(lambda: desk)
    monkeypatch.setattr(attempt, "apply_async", lambda **message: desk.published.append(message))
    monkeypatch.setattr(attempt, "send_event", lambda kind, **_: desk.events.append(kind))
    monkeypatch.setattr(time, "sleep", desk.pauses.append)
    monkeypatch.setattr(module, "_passed", set())
    yield desk
    monkeypatch.setattr(module, "_make", None)
    monkeypatch.setattr(module, "_performer", None)


def start(*args: Any, **kwargs: Any) -> Any:
    """As Celery calls the task when a message came."""
    return attempt.run(*args, **kwargs)


def test_a_ticket_runs_its_attempt(desk: Desk) -> None:
    assert start("film", 3, QUEUE, 1) == {"job": "film", "state": "succeeded"}
    assert desk.performed == [Ticket("film", 3, QUEUE)]
    assert (desk.published, desk.events) == ([], [])


@pytest.mark.parametrize(
    "call",
    [
        lambda: start("film", 3, QUEUE, 1, "a newer worker's", {"more": 1}),
        lambda: start("film", 3, QUEUE, 1, colour="blue"),
        lambda: start("film", 3, QUEUE, format=1, colour="blue", more=[1]),
    ],
)
def test_what_a_newer_ticket_says_beside_is_passed_over(desk: Desk, call: Callable[[], Any]) -> None:
    """Its format says that an old worker understands the rest."""
    assert call() == {"job": "film", "state": "succeeded"}
    assert desk.performed == [Ticket("film", 3, QUEUE)]


def test_a_newer_ticket_goes_back_whole_behind_the_others(desk: Desk) -> None:
    desk.answer = UNKNOWN
    with pytest.raises(Ignore, match="unknown-format"):
        start("film", 3, QUEUE, 2, "more", colour="blue")
    (message,) = desk.published
    assert message["args"] == ("film", 3, QUEUE, 2, "more")
    assert message["kwargs"] == {"colour": "blue"}
    assert (message["task_id"], message["queue"], message["routing_key"]) == ("film.3", QUEUE, QUEUE)
    assert message["ignore_result"] is True
    assert desk.events == ["task-rejected"]


def test_newer_tickets_that_go_round_cost_one_pause_each_round(desk: Desk) -> None:
    """A pause for each would keep this version's own tickets behind a hundred of them for a minute."""
    for passes in range(1, 4):
        for job in ("film", "clip", "reel"):
            desk.answer = UNKNOWN
            with pytest.raises(Ignore, match="unknown-format"):
                start(job, 3, QUEUE, 2)
        desk.answer = State.SUCCEEDED
        start("another", 1, QUEUE, 1)
        assert desk.pauses == [module.PASS_ON_S] * (passes - 1)


def test_one_newer_ticket_alone_does_not_spin(desk: Desk) -> None:
    desk.answer = UNKNOWN
    for passes in range(5):
        with pytest.raises(Ignore, match="unknown-format"):
            start("film", 3, QUEUE, 2)
        assert desk.pauses == [module.PASS_ON_S] * passes


@pytest.mark.parametrize("reason", ["stale-ticket", "held-by-other", "fenced"])
def test_a_ticket_without_meaning_is_told_as_rejected(desk: Desk, reason: str) -> None:
    """Or Flower would show it as started for ever."""
    desk.answer = reason
    with pytest.raises(Ignore, match=reason):
        start("film", 3, QUEUE, 1)
    assert (desk.events, desk.published) == (["task-rejected"], [])


def test_a_job_that_was_handed_back_is_told_as_retried(desk: Desk) -> None:
    desk.answer = State.PENDING
    with pytest.raises(Ignore, match="handed back"):
        start("film", 3, QUEUE, 1)
    assert desk.events == ["task-retried"]


@pytest.mark.parametrize(
    "args",
    [
        (None, 1, QUEUE, 1),
        ("film", "one", QUEUE, 1),
        ("film", 1, QUEUE, True),
        ("film", 2**53, QUEUE, 1),
        ("film", 0, QUEUE, 1),
    ],
)
def test_what_is_no_ticket_is_dropped(desk: Desk, args: tuple[Any, ...]) -> None:
    with pytest.raises(Ignore, match="malformed"):
        start(*args)
    assert desk.performed == []


def test_a_process_without_a_gpu_leaves_the_ticket(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_make", None)
    with pytest.raises(Reject) as caught:
        start("film", 1, QUEUE, 1)
    assert caught.value.requeue
