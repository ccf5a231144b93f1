"""Which GPU a waiting pro job gets, and who yields for it."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.records.jobs import Job
from callsheet.routing.benches import may_yield
from callsheet.routing.seating import Heir, Seater, Seating
from callsheet.routing.seats import Seat
from callsheet.routing.tiers import TIERS
from tests.support.snapshots import NOW, heir, job, lane, lanes, replicas, seat

SPECS = lanes(
    lane("wan", vram_gb=60.0, load_s=10.0),
    lane("ltx", vram_gb=60.0, load_s=10.0),
    lane("cog", vram_gb=10.0, load_s=1.0),
    lane("huge", vram_gb=100.0),
)
RULES = {rule.name: rule for rule in TIERS}


def seatings(heirs: list[Heir], fleet: list[Seat], *, spare: int = 99, targets: Any = None) -> list[Seating]:
    counted = replicas(fleet, SPECS, targets)
    return list(Seater(fleet, SPECS, RULES, spare, counted).seat(heirs))


def seated(heirs: list[Heir], fleet: list[Seat], *, spare: int = 99) -> list[tuple[str, str, str]]:
    """(heir, GPU, victim)"""
    found = seatings(heirs, fleet, spare=spare)
    return [(one.heir.job_id, one.gpu, one.victim.id if one.victim else "") for one in found]


def test_an_idle_gpu_with_the_weights_comes_before_a_victim() -> None:
    fleet = [seat("h100", 0, runs=job()), seat("a100", 1, warm=["wan"])]
    assert seated([heir()], fleet) == [("pro", "a100-1@node", "")]


def test_without_an_idle_one_a_free_job_yields() -> None:
    (one,) = seatings([heir()], [seat(runs=job())])
    assert (one.victim and one.victim.id, one.loads) == ("victim", False)
    assert one.reason == (
        "no GPU of its lane is idle; a100-0@node has its weights; free job victim there yields in "
        "about 2.0 s and would have run 60 s more"
    )


def test_among_victims_the_start_and_the_service_time_decide() -> None:
    sooner = [seat(index=0, runs=job("a"), yields_s=3.0), seat(index=1, runs=job("b"), yields_s=1.0)]
    assert seated([heir()], sooner)[0][2] == "b"
    faster = [seat("l40s", 0, runs=job("a"), yields_s=1.0), seat("h100", 1, runs=job("b"), yields_s=2.0)]
    assert seated([heir(work_s=100.0)], faster)[0][2] == "b"


def test_a_gpu_of_the_lane_that_ends_within_half_a_second_is_waited_for() -> None:
    free = seat(index=0, runs=job("free"), yields_s=2.0)
    assert seated([heir()], [free, seat(index=1, runs=job("pro-1", tier="pro"), frees_s=2.5)]) == []
    assert seated([heir()], [free, seat(index=1, runs=job("pro-1", tier="pro"), frees_s=2.6)]) != []


def test_an_end_is_counted_on_by_one_job_only() -> None:
    fleet = [seat(index=0, runs=job("free")), seat(index=1, runs=job("pro-1", tier="pro"), frees_s=1.0)]
    assert seated([heir("first"), heir("second")], fleet) == [("second", "a100-0@node", "free")]


def test_an_idle_gpu_is_taken_though_another_ends_soon() -> None:
    fleet = [seat(index=0, warm=["wan"]), seat(index=1, runs=job(tier="pro"), frees_s=0.3)]
    assert seated([heir()], fleet) == [("pro", "a100-0@node", "")]


def test_a_gpu_loads_when_none_has_the_weights() -> None:
    (one,) = seatings([heir()], [seat(index=0)])
    assert (one.victim, one.loads, one.reason) == (None, True, "a100-0@node loads wan for it and is idle")


def test_a_load_must_let_the_job_start_two_seconds_sooner() -> None:
    def fleet(frees_s: float) -> list[Seat]:
        return [seat(index=0), seat(index=1, runs=job(tier="pro"), frees_s=frees_s)]

    assert seated([heir()], fleet(12.0)) == []
    assert seated([heir()], fleet(12.1)) == [("pro", "a100-0@node", "")]


def test_warm_victims_come_before_cold_idle_gpus() -> None:
    assert seated([heir()], [seat(index=0), seat(index=1, runs=job())])[0][2] == "victim"


def test_a_load_is_weighed_against_a_victim_that_yields_late() -> None:
    """Its step takes minutes: an idle GPU has the weights loaded long before."""
    late = seat(index=1, runs=job(), yields_s=292.0, frees_s=2000.0)
    assert seated([heir()], [seat(index=0), late]) == [("pro", "a100-0@node", "")]
    soon = seat(index=1, runs=job(), yields_s=11.9, frees_s=2000.0)
    assert seated([heir()], [seat(index=0), soon]) == [("pro", "a100-1@node", "victim")]


def test_a_cold_victim_yields_when_nothing_else_helps() -> None:
    (one,) = seatings([heir()], [seat(runs=job(of="ltx"))])
    assert (one.victim and one.victim.id, one.loads) == ("victim", True)


def test_a_load_that_loses_less_comes_first() -> None:
    fleet = [seat(index=0, warm=["ltx"]), seat(index=1)]
    (one,) = seatings([heir()], fleet, targets={"a100": {"ltx": 1.0}})
    assert one.gpu == "a100-1@node"


def test_what_does_not_fit_is_not_seated() -> None:
    assert seated([heir(of="huge")], [seat()]) == []
    assert seated([heir(need="a100")], [seat("l40s", 0, warm=["wan"])]) == []
    assert seated([heir(of="gone")], [seat()]) == []


def test_a_part_of_a_card_gets_no_job_that_needs_the_whole() -> None:
    part = seat("h100", 0, warm=["cog"], vram_gib=40)
    assert seated([heir(of="cog", need="a100")], [part]) == []


def test_each_gpu_is_given_once_and_the_first_choose_first() -> None:
    fleet = [seat("h100", 0, warm=["wan"]), seat("a100", 1, warm=["wan"])]
    assert seated([heir("first"), heir("second"), heir("third")], fleet) == [
        ("first", "h100-0@node", ""),
        ("second", "a100-1@node", ""),
    ]


def test_a_job_that_fits_nowhere_does_not_hold_up_the_next() -> None:
    assert seated([heir("huge", of="huge"), heir()], [seat(warm=["wan"])]) == [("pro", "a100-0@node", "")]


def test_promised_gpus_are_given_to_nobody_else() -> None:
    assert seated([heir()], [seat(warm=["wan"], promised=True)]) == []
    assert seated([heir()], [seat(runs=job(), promised=True)]) == []


def test_gpus_that_load_something_else_are_no_place_for_a_load() -> None:
    assert seated([heir()], [seat(loading="ltx")]) == []


def test_no_more_jobs_yield_than_may_be_lent() -> None:
    fleet = [seat(index=n, runs=job(f"f{n}")) for n in range(3)]
    heirs = [heir(f"p{n}") for n in range(3)]
    assert len(seated(heirs, fleet, spare=2)) == 2
    assert seated(heirs, fleet, spare=0) == []


def test_idle_gpus_are_given_when_nobody_may_yield() -> None:
    assert seated([heir()], [seat(warm=["wan"])], spare=0) != []


def test_two_loads_do_not_both_evict_what_only_one_may() -> None:
    fleet = [seat(index=0, warm=["ltx"]), seat(index=1, warm=["ltx"]), seat("l40s", 2)]
    counted = replicas(fleet, SPECS, {"a100": {"ltx": 1.0}})
    list(Seater(fleet, SPECS, RULES, 9, counted).seat([heir("a")]))
    assert counted.of_lane["ltx"] == 1


PROTECTED = {
    "a tier that does not yield": job(tier="pro"),
    "asked already": job(order="yield"),
    "preempted often enough": job(preemptions=RULES["free"].max_preemptions),
    "decodes": job(phase="decode"),
    "stores": job(phase="store"),
    "waited 80 % of the longest wait": job(created_at=NOW - 2880.0),
}


@pytest.mark.parametrize("victim", PROTECTED.values(), ids=PROTECTED.keys())
def test_the_protected_do_not_yield(victim: Job) -> None:
    assert not may_yield(seat(runs=victim), RULES)


def test_a_job_that_ends_before_it_could_yield_is_left_alone() -> None:
    assert not may_yield(seat(runs=job(), frees_s=2.0, yields_s=2.0), RULES)
    assert may_yield(seat(runs=job(), frees_s=2.1, yields_s=2.0), RULES)


def test_up_to_the_cap_and_the_wait_a_free_job_yields() -> None:
    assert may_yield(seat(runs=job(preemptions=2, created_at=NOW - 2879.0)), RULES)


def test_an_empty_or_promised_gpu_has_nobody_who_yields() -> None:
    assert not may_yield(seat(), RULES)
    assert not may_yield(seat(runs=job(), promised=True), RULES)


def test_a_tier_without_a_rule_does_not_yield() -> None:
    assert not may_yield(seat(runs=job()), {})
