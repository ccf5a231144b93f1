"""From an exception to message and exit code."""

from __future__ import annotations

import inspect
import json

import click
import kombu.exceptions
import pytest
import redis.exceptions

from callsheet import errors
from callsheet.cli.failures import explain

TREE = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]


@pytest.mark.parametrize("kind", TREE)
def test_every_error_of_ours_keeps_its_message_and_code(kind: type[errors.CallsheetError]) -> None:
    failure = explain(kind("what happened; what to do"))
    assert (failure.kind, failure.exit_code) == (kind.__name__, kind.exit_code)
    assert failure.as_text() == "Error: what happened; what to do"


@pytest.mark.parametrize(
    "error",
    [
        redis.exceptions.ConnectionError("gone"),
        redis.exceptions.TimeoutError("slow"),
        redis.exceptions.BusyLoadingError("loading"),
        redis.exceptions.InvalidResponse("HTTP"),
        kombu.exceptions.OperationalError("gone"),
    ],
    ids=repr,
)
def test_outages_that_nobody_wrapped_are_unreachable(error: Exception) -> None:
    failure = explain(error)
    assert failure.exit_code == 5
    assert "callsheet doctor" in failure.message


@pytest.mark.parametrize(
    "error", [redis.exceptions.ResponseError("WRONGTYPE"), KeyError("x"), RuntimeError()]
)
def test_anything_else_is_a_fault_of_ours(error: Exception) -> None:
    failure = explain(error)
    assert failure.exit_code == 1
    assert "--debug" in failure.message


def test_the_systems_own_errors_speak_for_themselves() -> None:
    failure = explain(PermissionError(13, "Permission denied", "/films"))
    assert (failure.exit_code, failure.message) == (1, "[Errno 13] Permission denied: '/films'")


def test_a_wrong_call_tells_how_to_call() -> None:
    context = click.Context(click.Command("list"), info_name="list")
    failure = explain(click.UsageError("no such option", context))
    assert failure.exit_code == 2
    assert failure.as_text().startswith("Usage: list")
    assert failure.as_text().endswith("Error: no such option")


def test_json_is_one_line() -> None:
    text = explain(errors.JobNotFound("no\njob é")).as_json()
    assert "\n" not in text
    assert json.loads(text) == {"error": {"type": "JobNotFound", "message": "no\njob é", "exit_code": 3}}
