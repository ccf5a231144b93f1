"""How far a job moves its tenant's turn, and how far behind it stands."""

from __future__ import annotations

import pytest

from callsheet.routing.fair import ALLOWANCE, charge_s, delay_s


def test_a_job_is_charged_its_time_on_the_tenants_part_of_the_fleet() -> None:
    assert charge_s(100.0, 50.0, allowance=0.1) == pytest.approx(20.0)
    assert charge_s(100.0, 50.0) == pytest.approx(100.0 / (ALLOWANCE * 50.0))


def test_twice_the_weight_is_charged_half() -> None:
    assert charge_s(100.0, 50.0, weight=2.0) == pytest.approx(charge_s(100.0, 50.0) / 2)


def test_many_short_jobs_are_charged_as_one_long_one() -> None:
    assert 10 * charge_s(3.0, 50.0) == pytest.approx(charge_s(30.0, 50.0))


@pytest.mark.parametrize("nothing", [{"capacity": 0.0}, {"weight": 0.0}, {"allowance": 0.0}])
def test_nothing_is_charged_when_nothing_is_known_of_the_fleet(nothing: dict[str, float]) -> None:
    assert charge_s(100.0, **{"capacity": 50.0, **nothing}) == 0.0


def test_short_jobs_stand_a_little_before_long_ones() -> None:
    assert delay_s(10.0, 0.5) == 5.0 < delay_s(20.0, 0.5)


def test_without_patience_it_is_first_come_first_served() -> None:
    assert delay_s(10.0, 0.0) == delay_s(1000.0, 0.0) == 0.0
