"""Durations and moments on the command line, and what errors shall look like."""

from __future__ import annotations

import click
import pytest

from callsheet.cli.options import USER, Span, caller, moment_s, signed, span_s
from callsheet.cli.run import Asked

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("1d", 86400), ("0", 0), (" 5s ", 5)],
)
def test_spans(text: str, seconds: float) -> None:
    assert span_s(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5", "5 m", "5M", "nan", "inf", "1e3", "s", "5mm"])
def test_what_is_no_span(text: str) -> None:
    assert span_s(text) is None


@pytest.mark.parametrize("text", ["367d", "99999999999d", "9" * 400])
def test_a_span_ends_within_a_year(text: str) -> None:
    with pytest.raises(click.BadParameter, match="366 days"):
        Span().convert(text, None, None)
    assert Span().convert("366d", None, None) == 366 * 86400


def test_moments() -> None:
    assert moment_s("10m", now=NOW) == NOW + 600
    assert moment_s("+10m", now=NOW) == NOW + 600
    assert moment_s("2023-11-14T22:13:20Z", now=0) == NOW
    assert moment_s("2023-11-15T00:13:20+02:00", now=0) == NOW
    assert moment_s("2023-11-14", now=0) is not None
    for text in ("soon", "", "2023-13-01", "99999-01-01"):
        assert moment_s(text, now=NOW) is None


@pytest.mark.parametrize(
    ("args", "json"),
    [
        ("job list", False),
        ("-o json job list", True),
        ("job list -ojson", True),
        ("job list --output=json", True),
        ("-o json job list -o table", False),
        ("job submit -- -o json", False),
        ("job list -o", False),
    ],
)
def test_errors_come_as_json_when_that_was_asked_for(args: str, json: bool) -> None:
    assert Asked.read(args.split(), {}).json is json


def test_tracebacks_are_shown_when_asked_for() -> None:
    assert Asked.read(["job", "--debug"], {}).debug
    assert Asked.read([], {"CALLSHEET_DEBUG": "1"}).debug
    assert not Asked.read(["--", "--debug"], {"CALLSHEET_DEBUG": "0"}).debug


@pytest.mark.parametrize(
    ("args", "env", "who"),
    [
        (["--as", "ann@desk"], "", "ann@desk"),
        ([], "bot@ci", "bot@ci"),
        (["--as", "ann@desk"], "bot@ci", "ann@desk"),
        ([], "", caller()),
    ],
    ids=["option", "variable", "both", "neither"],
)
def test_who_gives_an_order(monkeypatch: pytest.MonkeyPatch, args: list[str], env: str, who: str) -> None:
    monkeypatch.setenv(USER, env)
    command = signed(click.Command("order", callback=lambda who: who))
    with command.make_context("order", list(args)) as context:
        assert command.invoke(context) == who


def test_a_caller_has_a_user_and_a_host() -> None:
    user, _, host = caller().partition("@")
    assert user
    assert host
