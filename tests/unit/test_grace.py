"""How long a child may take."""

from __future__ import annotations

from dataclasses import replace

from callsheet.workers.grace import Grace
from callsheet.workers.slate import Running

RUN = Running(job_id="film", attempt=1, token="t", steps=8, phase="denoise", pid=1)


def test_without_an_order_nothing_is_overdue() -> None:
    grace = Grace(5.0, 0.0)
    assert [grace.overdue(RUN, "", now) for now in (0.0, 1e6)] == ["", ""]


def test_the_floor_is_kept() -> None:
    grace = Grace(5.0, 0.0)
    assert grace.overdue(RUN, "yield", 100.0) == ""
    assert grace.overdue(RUN, "yield", 105.0) == ""
    assert "did not obey" in grace.overdue(RUN, "yield", 105.1)


def test_slow_steps_get_three_of_their_own() -> None:
    grace = Grace(5.0, 0.0)
    for step in range(3):
        grace.overdue(replace(RUN, step=step), "", step * 10.0)
    assert grace.overdue(replace(RUN, step=2), "yield", 20.0) == ""
    assert grace.overdue(replace(RUN, step=2), "yield", 50.0) == ""
    assert grace.overdue(replace(RUN, step=2), "yield", 50.1)


def test_a_decode_may_take_as_long_as_the_attempt_before_it() -> None:
    grace = Grace(5.0, 0.0)
    grace.overdue(RUN, "", 0.0)
    decoding = replace(RUN, step=8, phase="decode")
    grace.overdue(decoding, "yield", 60.0)
    assert grace.overdue(decoding, "yield", 119.0) == ""
    assert grace.overdue(decoding, "yield", 121.0)


def test_an_order_that_was_taken_back_starts_anew() -> None:
    grace = Grace(5.0, 0.0)
    grace.overdue(RUN, "yield", 0.0)
    grace.overdue(RUN, "", 4.0)
    grace.overdue(RUN, "yield", 6.0)
    assert grace.overdue(RUN, "yield", 10.0) == ""


def test_each_attempt_has_its_own() -> None:
    grace = Grace(5.0, 0.0)
    grace.overdue(RUN, "yield", 0.0)
    assert grace.overdue(replace(RUN, token="u"), "yield", 100.0) == ""


def test_no_progress_at_all_is_noticed() -> None:
    grace = Grace(5.0, 30.0)
    grace.overdue(RUN, "", 0.0)
    grace.overdue(replace(RUN, step=1), "", 29.0)
    assert grace.overdue(replace(RUN, step=1), "", 58.0) == ""
    assert "no progress" in grace.overdue(replace(RUN, step=1), "", 59.1)
