"""What the policy is told of a live deployment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callsheet.routing.fleet import LOAD_S, live_rules
from callsheet.routing.tiers import TierRule
from callsheet.routing.work import UNKNOWN_S, work_s
from callsheet.settings import Settings
from tests.support.catalogs import built_in, spec
from tests.support.jobs import request

HEAVY = "wan2.2-t2v-a14b"


def test_small_models_share_a_lane_and_heavy_ones_have_their_own() -> None:
    lanes = live_rules(built_in(), Settings()).lanes
    assert set(lanes) == {"", *(one.name for one in built_in() if one.lane)}
    assert (lanes[""].load_s, lanes[""].vram_gb) == (0.0, 0.0)


def test_a_heavy_lane_runs_where_it_fits_and_loads_as_fast_as_the_settings_say() -> None:
    lane = live_rules(built_in(), Settings(load_gb_per_s=4.0)).lanes[HEAVY]
    assert "a100" in lane.speed
    assert "l40s" not in lane.speed
    assert lane.speed["h100"] == 2.0
    assert lane.load_s == pytest.approx(LOAD_S + spec(HEAVY).weights_gb / 4.0)


def test_the_settings_say_what_each_tier_is_owed() -> None:
    rules = live_rules(
        [], Settings(pro_share=0.6, free_share=0.3, max_preemptions=1, free_longest_wait_s=60.0)
    )
    pro, free = rules.tiers
    assert (pro.name, pro.share, pro.preempts, pro.yields) == ("pro", 0.6, True, False)
    assert (free.share, free.yields, free.max_preemptions, free.longest_wait_s) == (0.3, True, 1, 60.0)
    assert rules.tier("free") == free
    assert rules.tier("gold") == TierRule("gold")


def test_work_grows_with_steps_and_with_the_film() -> None:
    model = spec()
    plain = request(model=model.name, width=model.width, height=model.height, frames=model.frames, steps=10)
    assert work_s(model, plain) == pytest.approx(10 * model.step_s)
    assert work_s(model, replace(plain, steps=20)) == pytest.approx(20 * model.step_s)
    assert work_s(model, replace(plain, frames=2 * model.frames)) == pytest.approx(20 * model.step_s)


def test_a_model_that_tells_no_step_time_counts_with_a_guess() -> None:
    model = replace(spec(), step_s=0.0)
    plain = request(width=model.width, height=model.height, frames=model.frames, steps=10)
    assert work_s(model, plain) == pytest.approx(10 * UNKNOWN_S)
