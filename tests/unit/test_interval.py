"""The interval between background saves."""

from __future__ import annotations

import math

import pytest

from callsheet.workers.interval import OVERHEAD, interval_s


@pytest.mark.parametrize("save_s", [0.001, 0.02, 0.1, 1.0])
def test_a_rare_crash_and_a_cheap_save_give_youngs_first_order_optimum(save_s: float) -> None:
    mean_s = 1e7
    assert interval_s(save_s, mean_s) == pytest.approx(math.sqrt(2 * save_s * mean_s), rel=0.01)


def test_it_minimises_the_time_lost() -> None:
    """Daly's model of the whole: the run is stretched by saves, and by crashes that redo half an interval."""
    save_s, mean_s = 0.5, 5000.0

    def stretch(interval: float) -> float:
        return mean_s / interval * (math.exp((interval + save_s) / mean_s) - 1)

    best = interval_s(save_s, mean_s)
    assert all(stretch(best) <= stretch(best * factor) for factor in (0.8, 0.9, 1.1, 1.25))


def test_more_crashes_mean_more_saves() -> None:
    assert interval_s(0.05, 3600.0) < interval_s(0.05, 86_400.0)


@pytest.mark.parametrize("mean_s", [0.1, 1.0, 60.0, 86_400.0])
def test_saves_never_take_more_than_their_share(mean_s: float) -> None:
    assert 0.5 / interval_s(0.5, mean_s) <= OVERHEAD
