"""Celery's options: each one is honoured, or refused by its name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from callsheet import generate_video
from callsheet.errors import UnsupportedOption
from callsheet.tasks.options import REFUSED, read_options

NOW = 1_800_000_000.0


def read(**options: Any) -> Any:
    return read_options(options, now=lambda: NOW)


def test_nothing_given_means_at_once_and_without_a_deadline() -> None:
    options = read()
    assert (options.task_id, options.canvas, options.not_before, options.deadline) == ("", {}, 0.0, 0.0)
    assert not options.ignore_result


def test_countdown_counts_from_the_stores_clock() -> None:
    assert read(countdown=10).not_before == NOW + 10
    assert read(countdown=0).not_before == NOW


def test_the_stores_clock_is_not_asked_without_a_relative_time() -> None:
    def fail() -> float:
        raise AssertionError("asked for the time")

    at = datetime(2027, 1, 1, tzinfo=UTC)
    assert read_options({"eta": at, "expires": at}, now=fail).not_before == at.timestamp()


@pytest.mark.parametrize(
    "eta",
    [
        datetime(2027, 1, 1, 12, tzinfo=UTC),
        datetime(2027, 1, 1, 14, tzinfo=timezone(timedelta(hours=2))),
        datetime(2027, 1, 1, 12),
        "2027-01-01T12:00:00+00:00",
        "2027-01-01T12:00:00",
    ],
)
def test_eta_is_a_time_in_any_form(eta: object) -> None:
    assert read(eta=eta).not_before == datetime(2027, 1, 1, 12, tzinfo=UTC).timestamp()


def test_expires_in_seconds_or_as_a_time() -> None:
    assert read(expires=60).deadline == NOW + 60
    assert (
        read(expires=datetime(2027, 1, 1, tzinfo=UTC)).deadline
        == datetime(2027, 1, 1, tzinfo=UTC).timestamp()
    )


@pytest.mark.parametrize(
    "options",
    [
        {"countdown": -1},
        {"countdown": float("nan")},
        {"countdown": float("inf")},
        {"countdown": True},
        {"countdown": []},
        {"eta": 5},
        {"eta": "tomorrow"},
        {"expires": "soon"},
        {"expires": -3},
    ],
)
def test_a_bad_time_is_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedOption, match=next(iter(options))):
        read(**options)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_cannot_be_honoured_is_refused_by_name_with_what_to_do(name: str) -> None:
    with pytest.raises(UnsupportedOption) as caught:
        read(**{name: "x"})
    assert name in str(caught.value)
    assert REFUSED[name] in str(caught.value)


def test_every_refused_option_is_named_in_one_error() -> None:
    with pytest.raises(UnsupportedOption) as caught:
        read(priority=3, queue="mine", frobnicate=1, serializer="pickle", countdown=-2)
    for name in ("priority", "queue", "frobnicate", "serializer", "countdown"):
        assert name in str(caught.value)


def test_an_option_set_to_none_was_not_given() -> None:
    assert read(priority=None, queue=None, link=None).canvas == {}


@pytest.mark.parametrize("name", ["map", "starmap", "chunks"])
def test_batches_within_one_message_are_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedOption, match=rf"{name}.*group"):
        getattr(generate_video, name)([("a cat", "tiny-wan")], 1)


def test_json_is_the_serializer_that_is_accepted() -> None:
    assert read(serializer="json").task_id == ""


@pytest.mark.parametrize("task_id", ["x" * 129, "a\nb", 7])
def test_a_task_id_must_be_usable(task_id: object) -> None:
    with pytest.raises(UnsupportedOption, match="task_id"):
        read(task_id=task_id)


def test_canvas_options_are_kept_and_internal_ones_left_out() -> None:
    options = read(
        link=["l"], group_id="g", producer=object(), add_to_parent=False, task_id="t", ignore_result=True
    )
    assert options.canvas == {"link": ["l"], "group_id": "g"}
    assert (options.task_id, options.ignore_result) == ("t", True)
