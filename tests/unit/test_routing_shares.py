"""Guaranteed shares bind while they are demanded; the rest is lent."""

from __future__ import annotations

from dataclasses import replace

from callsheet.routing.shares import guaranteed, lendable, running_of
from callsheet.routing.tiers import FREE, PRO
from tests.support.snapshots import job, seat

TIERS = (PRO, replace(FREE, share=0.5))
TWO_OF_FOUR = [seat(index=n, runs=job(f"f{n}", tier="free")) for n in range(2)] + [
    seat(index=n, runs=job(f"p{n}", tier="pro")) for n in (2, 3)
]


def test_running_jobs_are_counted_by_tier() -> None:
    assert running_of([*TWO_OF_FOUR, seat(index=4)]) == {"free": 2, "pro": 2}


def test_a_tier_is_guaranteed_its_share() -> None:
    pro_only = [*TWO_OF_FOUR[2:], seat(index=4), seat(index=5)]
    assert guaranteed(pro_only, {"free": 9}, TIERS) == {"pro": 2, "free": 2}
    assert guaranteed(TWO_OF_FOUR, {"free": 9}, TIERS)["free"] == 2


def test_nobody_is_guaranteed_more_than_runs_and_waits() -> None:
    pro_only = [*TWO_OF_FOUR[2:], seat(index=4), seat(index=5)]
    assert guaranteed(pro_only, {"free": 1}, TIERS)["free"] == 1
    assert guaranteed(pro_only, {}, TIERS)["free"] == 0


def test_what_is_guaranteed_and_used_is_not_lent() -> None:
    assert lendable(TWO_OF_FOUR, {"free": 5}, TIERS) == 0
    assert lendable(TWO_OF_FOUR, {}, TIERS) == 0


def test_what_runs_beyond_the_share_is_lent() -> None:
    three = [*TWO_OF_FOUR[:3], seat(index=9, runs=job("more", tier="free"))]
    assert lendable(three, {}, TIERS) == 1


def test_jobs_of_a_tier_that_does_not_yield_are_never_lent() -> None:
    assert lendable(TWO_OF_FOUR[2:], {"pro": 5}, TIERS) == 0
