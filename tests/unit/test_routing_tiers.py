"""What pro and free are promised."""

from __future__ import annotations

from callsheet.records.requests import PREEMPTIBLE, PREEMPTING
from callsheet.records.requests import TIERS as NAMES
from callsheet.routing.tiers import TIERS


def test_the_rules_name_the_tiers_of_requests_in_their_order() -> None:
    assert tuple(rule.name for rule in TIERS) == NAMES


def test_who_preempts_and_who_yields_is_said_alike_everywhere() -> None:
    assert tuple(rule.name for rule in TIERS if rule.preempts) == PREEMPTING
    assert tuple(rule.name for rule in TIERS if rule.yields) == PREEMPTIBLE


def test_the_guaranteed_shares_fit_into_the_fleet() -> None:
    assert sum(rule.share for rule in TIERS) <= 1.0


def test_whoever_yields_is_protected_at_some_time() -> None:
    for rule in TIERS:
        assert not rule.yields or (rule.max_preemptions > 0 and rule.longest_wait_s > 0)
