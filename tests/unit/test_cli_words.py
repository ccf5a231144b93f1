"""Numbers, times and foreign text as people read them."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone

import pytest

from callsheet.cli.words import count, first_sentence, moment, printable, span


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-0.2, "0.0 s"),
        (0, "0.0 s"),
        (0.44, "0.4 s"),
        (9.94, "9.9 s"),
        (12.4, "12 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
        (3599.7, "1 h 00 min"),
        (7800, "2 h 10 min"),
        (86399.9, "1 d 0 h"),
        (3 * 86400 + 4 * 3600, "3 d 4 h"),
    ],
)
def test_spans(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_a_moment_is_told_with_its_zone() -> None:
    assert moment(0) == "-"
    assert moment(1_700_000_000.9, UTC) == "2023-11-14 22:13:20+00:00"
    assert moment(1_700_000_000, timezone(timedelta(hours=2))) == "2023-11-15 00:13:20+02:00"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines\tand tabs", "two lines and tabs"),
        ("a\x1b[31mred", "a\ufffd[31mred"),
        ("turned \u202eback", "turned \ufffdback"),
        ("lone \udc80", "lone \ufffd"),
        ("👩\u200d🚀 مرحبا", "👩\u200d🚀 مرحبا"),
        ("a\u2028b\u00a0c", "a b c"),
    ],
)
def test_foreign_text_cannot_move_the_cursor_or_hide(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_long_text_is_cut_to_the_limit() -> None:
    assert printable("abcdef", 4) == "abc…"
    assert printable("abcd", 4) == "abcd"


def test_counting() -> None:
    assert count(1, "job") == "1 job"
    assert count(0, "job") == "0 jobs"
    assert count(2, "job waits", "jobs wait") == "2 jobs wait"


def test_the_first_sentence_is_what_happened() -> None:
    assert first_sentence("no answer: 127.0.0.1 refused. Start it. Or not.") == "no answer: 127.0.0.1 refused"
    assert first_sentence("one.") == "one"
    assert first_sentence("") == ""
