"""What a fleet can do of a mix."""

from __future__ import annotations

import pytest

from callsheet.errors import SettingsError
from callsheet.simulator.capacity import capacity, work_by_model
from callsheet.simulator.scenario import Arrival, Fleet, Model

A100 = Fleet("a100", 4, 80.0)
L40S = Fleet("l40s", 2, 48.0)
SMALL = Model("small", 20.0, {"a100": 1.0, "l40s": 0.5}, 11.0)
LARGE = Model("large", 60.0, {"a100": 1.0, "l40s": 9.0}, 31.0)


def test_one_model_uses_every_gpu() -> None:
    assert capacity([A100, L40S], [SMALL, LARGE], {"small": 7.0}) == pytest.approx(5.0)


def test_a_model_that_does_not_fit_a_class_leaves_it_alone() -> None:
    assert capacity([A100, L40S], [SMALL, LARGE], {"large": 7.0}) == pytest.approx(4.0)


def test_a_mix_places_each_model_where_it_is_best() -> None:
    # 1 of the small model on the L40S, 4 of the large one on the A100: no GPU serves both.
    assert capacity([A100, L40S], [SMALL, LARGE], {"small": 1.0, "large": 4.0}) == pytest.approx(5.0)
    assert capacity([A100, L40S], [SMALL, LARGE], {"small": 1.0, "large": 9.0}) == pytest.approx(40.0 / 9.0)


def test_only_proportions_count() -> None:
    mix = {"small": 1.0, "large": 3.0}
    tenfold = {name: 10.0 * work for name, work in mix.items()}
    assert capacity([A100, L40S], [SMALL, LARGE], mix) == pytest.approx(
        capacity([A100, L40S], [SMALL, LARGE], tenfold)
    )


def test_what_has_no_answer() -> None:
    with pytest.raises(SettingsError, match="'large' has jobs, but no GPU"):
        capacity([L40S], [SMALL, LARGE], {"small": 1.0, "large": 1.0})
    with pytest.raises(SettingsError, match="'other' has jobs"):
        capacity([L40S], [SMALL], {"other": 1.0})
    with pytest.raises(SettingsError, match="no work"):
        capacity([L40S], [SMALL], {})
    assert capacity([L40S], [SMALL, LARGE], {"small": 1.0, "large": 0.0}) == pytest.approx(1.0)


def test_work_adds_up_by_model() -> None:
    arrivals = [
        Arrival(0.0, "t", "pro", name, work_s, 9) for name, work_s in (("a", 2.0), ("b", 1.0), ("a", 3.0))
    ]
    assert work_by_model(arrivals) == {"a": 5.0, "b": 1.0}
