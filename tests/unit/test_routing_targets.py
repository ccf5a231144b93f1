"""How many GPUs each lane should have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from callsheet.routing.demand import Demand
from callsheet.routing.estimates import LaneSpec
from callsheet.routing.targets import Table, able, aims
from callsheet.routing.tiers import TIERS, TierRule
from tests.support.snapshots import lane, lanes

QUICK = lane("quick", load_s=3.0)
SLOW = lane("slow", load_s=300.0)
SPECS = lanes(QUICK, SLOW)


def free(of: str, per_s: float, need: str = "a100") -> Demand:
    return Demand("free", of, need, per_s)


def pro(of: str, per_s: float, need: str = "a100") -> Demand:
    return Demand("pro", of, need, per_s)


def holdings(
    gpus: Mapping[str, int], warm: Mapping[str, Mapping[str, int]]
) -> dict[str, Counter[frozenset[str]]]:
    """The first GPUs of a class have the first lane's weights, the first ones the second lane's too."""
    return {
        gpu_class: Counter(
            frozenset(of for of, having in warm.get(gpu_class, {}).items() if n < having)
            for n in range(count)
        )
        for gpu_class, count in gpus.items()
    }


def targets(
    wanted: Sequence[Demand],
    gpus: Mapping[str, int],
    warm: Mapping[str, Mapping[str, int]],
    specs: Mapping[str, LaneSpec],
    tiers: Sequence[TierRule],
) -> Table:
    return aims(wanted, holdings(gpus, warm), specs, tiers).targets


def test_a_class_runs_what_needs_no_more_memory_and_has_a_speed() -> None:
    assert able(QUICK, "h100", "l40s")
    assert able(QUICK, "l40s", "l40s")
    assert not able(QUICK, "l40s", "a100")
    assert not able(lane("big", speed={"h100": 1.0, "a100": 0.0}), "a100", "l40s")
    assert not able(None, "a100", "a100")


def test_a_class_that_nobody_knows_runs_its_own_jobs_only() -> None:
    odd = lane("odd", speed={"abacus": 1.0, "a100": 1.0})
    assert able(odd, "abacus", "abacus")
    assert not able(odd, "a100", "abacus")
    assert not able(odd, "abacus", "a100")


def test_no_class_gives_more_than_it_has() -> None:
    wanted = [free("quick", 50.0), pro("slow", 50.0), free("quick", 9.0, "l40s")]
    gpus = {"a100": 4, "h100": 3, "l40s": 2}
    table = targets(wanted, gpus, {}, SPECS, TIERS)
    for gpu_class, row in table.items():
        assert sum(row.values()) <= gpus[gpu_class] + 1e-6
        assert min(row.values()) >= -1e-9


def test_no_lane_gets_more_than_it_wants() -> None:
    table = targets([free("quick", 3.0)], {"a100": 8}, {"a100": {"quick": 8}}, SPECS, TIERS)
    assert table["a100"]["quick"] == pytest.approx(3.0)


def test_what_needs_large_cards_gets_none_of_the_small_ones() -> None:
    table = targets([free("quick", 5.0, "a100")], {"a100": 1, "l40s": 9}, {}, SPECS, TIERS)
    assert table == {"a100": {"quick": pytest.approx(1.0)}, "l40s": {}}


def test_weights_are_not_moved_for_a_little_more_speed() -> None:
    slow = lanes(lane("slow", load_s=30.0, speed={"a100": 1.0, "h100": 1.1}))
    table = targets([free("slow", 2.0)], {"a100": 2, "h100": 2}, {"a100": {"slow": 2}}, slow, TIERS)
    assert table["a100"]["slow"] == pytest.approx(2.0)
    assert table["h100"]["slow"] == pytest.approx(0.0)


def test_weights_are_moved_when_they_serve_more_than_the_load_costs() -> None:
    warm = {"a100": {"slow": 4}}
    wanted = [free("quick", 2.0), free("slow", 2.0)]
    table = targets(wanted, {"a100": 4}, warm, SPECS, TIERS)
    assert table["a100"] == {"quick": pytest.approx(2.0), "slow": pytest.approx(2.0)}


def test_warm_weights_decide_among_equals() -> None:
    both = lanes(lane("quick", load_s=3.0, speed={"a100": 1.0, "h100": 1.0}))
    table = targets([free("quick", 2.0)], {"a100": 4, "h100": 4}, {"h100": {"quick": 2}}, both, TIERS)
    assert table["h100"]["quick"] == pytest.approx(2.0)


def test_the_tier_that_preempts_comes_first() -> None:
    warm = {"a100": {"quick": 4, "slow": 4}}
    table = targets([free("quick", 4.0), pro("slow", 3.0)], {"a100": 4}, warm, SPECS, TIERS)
    assert table["a100"] == {"quick": pytest.approx(1.0), "slow": pytest.approx(3.0)}


def test_lanes_of_a_tier_advance_alike() -> None:
    warm = {"a100": {"quick": 6, "slow": 6}}
    table = targets([free("quick", 8.0), free("slow", 4.0)], {"a100": 6}, warm, SPECS, TIERS)
    assert table["a100"] == {"quick": pytest.approx(4.0), "slow": pytest.approx(2.0)}


def test_without_demand_there_is_no_target() -> None:
    assert targets([], {"a100": 4}, {}, SPECS, TIERS) == {"a100": {}}


def test_a_lane_that_nobody_knows_gets_nothing_and_breaks_nothing() -> None:
    table = targets([free("gone", 5.0), free("quick", 1.0)], {"a100": 4}, {}, SPECS, TIERS)
    assert "gone" not in table["a100"]


def test_a_demand_of_a_lane_that_nobody_knows_does_not_hold_up_the_others() -> None:
    warm = {"a100": {"quick": 4, "slow": 4}}
    wanted = [free("gone", 1.0), free("quick", 8.0), free("slow", 4.0)]
    assert sum(targets(wanted, {"a100": 4}, warm, SPECS, TIERS)["a100"].values()) == pytest.approx(4.0)


def test_the_only_lane_whose_free_jobs_wait_gets_gpus_however_long_it_loads() -> None:
    warm = {"a100": {"quick": 4}}
    assert targets([free("slow", 4.0)], {"a100": 4}, warm, SPECS, TIERS)["a100"]["slow"] > 0.5


def test_a_gpu_with_two_sets_of_weights_counts_once() -> None:
    """One GPU has both, the other only what nobody wants there: it has to load."""
    held = {"a100": Counter({frozenset({"quick", "slow"}): 1, frozenset({"other"}): 1})}
    found = aims([free("quick", 1.0), free("slow", 1.0)], held, SPECS, TIERS)
    assert found.targets["a100"] == {"quick": pytest.approx(1.0), "slow": pytest.approx(1.0)}
    assert found.moves["a100"] == {"quick": pytest.approx(1.0), "slow": pytest.approx(0.0)}
    assert [(of, weights) for of, weights, _ in found.leaves] == [("a100", ())]


def test_what_is_misplaced_moves_though_the_weights_are_in_the_class_already() -> None:
    """Slow work on the large cards' lane: its GPU is worth more with the other lane's weights."""
    specs = lanes(
        lane("small", load_s=3.0, speed={"l40s": 0.65, "h100": 1.8}),
        lane("large", load_s=3.0, speed={"l40s": 0.1, "h100": 2.0}),
    )
    held = {"l40s": Counter({frozenset({"small"}): 1, frozenset({"large"}): 1})}
    wanted = [free("small", 1.3, "l40s"), free("large", 2.0, "l40s")]
    found = aims(wanted, {**held, "h100": Counter({frozenset({"large"}): 1})}, specs, TIERS)
    assert found.moves["l40s"]["small"] == pytest.approx(1.0)
    assert ("l40s", ("large",)) in [(of, weights) for of, weights, _ in found.leaves]
