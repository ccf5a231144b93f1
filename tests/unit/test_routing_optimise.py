"""Linear programs."""

from __future__ import annotations

import pytest

from callsheet.routing.optimise import LinearProgram


def test_the_best_corner_is_found() -> None:
    program = LinearProgram()
    x, y = program.variable(3.0), program.variable(2.0)
    program.limit({x: 1.0, y: 1.0}, 4.0)
    program.limit({x: 1.0, y: 3.0}, 6.0)
    program.limit({x: 1.0}, 3.0)
    assert program.solve() == pytest.approx([3.0, 1.0])


def test_a_variable_keeps_below_its_end() -> None:
    program = LinearProgram()
    x = program.variable(1.0, at_most=2.5)
    program.limit({x: 1.0}, 9.0)
    assert program.solve() == pytest.approx([2.5])


def test_what_costs_stays_at_zero() -> None:
    program = LinearProgram()
    x = program.variable(-1.0)
    program.limit({x: 1.0}, 9.0)
    assert program.solve() == pytest.approx([0.0])


def test_rows_that_contradict_each_other_are_told() -> None:
    program = LinearProgram()
    x = program.variable(1.0)
    program.limit({x: 1.0}, -1.0)
    with pytest.raises(ValueError, match="no solution"):
        program.solve()


def test_a_sum_without_an_upper_end_is_told() -> None:
    program = LinearProgram()
    x, y = program.variable(1.0), program.variable()
    program.limit({y: 1.0, x: -1.0}, 1.0)
    with pytest.raises(ValueError, match="no solution"):
        program.solve()
