"""Traffic is thinned, repeated and spiked."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from callsheet.errors import SettingsError
from callsheet.simulator.scale import repeated, scaled
from callsheet.simulator.scenario import Arrival, Fleet, Model, Spike
from callsheet.simulator.spikes import parse_spike, with_spikes

FLEETS = (Fleet("a100", 10, 80.0),)
MODELS = (Model("m", 20.0, {"a100": 1.0}, 11.0),)
WINDOW_S = 100.0


def arrivals(count: int = 400) -> tuple[Arrival, ...]:
    """Evenly over the window, of two tiers in turn, 1 s of work each."""
    return tuple(
        Arrival(WINDOW_S * each / count, f"t{each}", ("pro", "free")[each % 2], "m", 1.0, 9)
        for each in range(count)
    )


def scaled_to(load: float, seed: int = 3) -> tuple[Arrival, ...]:
    return scaled(arrivals(), FLEETS, MODELS, window_s=WINDOW_S, load=load, seed=seed)


@pytest.mark.parametrize("load", [0.1, 0.4, 0.9, 1.3, 5.0])
def test_work_is_the_load_times_capacity(load: float) -> None:
    made = scaled_to(load)
    assert len(made) == pytest.approx(load * 10.0 * WINDOW_S, rel=0.1)
    assert [each.at_s for each in made] == sorted(each.at_s for each in made)
    assert all(0.0 <= each.at_s < WINDOW_S for each in made)


def test_a_whole_number_of_copies_leaves_nothing_to_chance() -> None:
    made = Counter(each.tenant for each in scaled_to(0.8))
    assert made == {each.tenant: 2 for each in arrivals()}
    assert scaled_to(0.4) == arrivals()


def test_the_seed_decides() -> None:
    assert scaled_to(0.3) == scaled_to(0.3) != scaled_to(0.3, seed=4)


def test_repeats_arrive_soon_and_in_time() -> None:
    last = Arrival(99.999999, "t", "pro", "m", 1.0, 9)
    copies = list(repeated(last, 50.0, random.Random(3), WINDOW_S))
    assert len(copies) == 50
    assert copies[0] is last
    assert all(last.at_s <= each.at_s < WINDOW_S for each in copies)
    first = Arrival(5.0, "t", "pro", "m", 1.0, 9)
    assert all(5.0 <= each.at_s < 6.0 for each in repeated(first, 50.0, random.Random(3), WINDOW_S))


def test_too_many_jobs_are_refused() -> None:
    with pytest.raises(SettingsError, match="lower load"):
        scaled_to(1e6)


@pytest.mark.parametrize(
    ("text", "spike"),
    [
        ("10x@900s+300s:free", Spike(10.0, 900.0, 300.0, "free")),
        ("10x@900s+300s", Spike(10.0, 900.0, 300.0)),
        ("2.5x@0+7.5:pro-eu", Spike(2.5, 0.0, 7.5, "pro-eu")),
    ],
)
def test_spikes_are_read(text: str, spike: Spike) -> None:
    assert parse_spike(text) == spike


@pytest.mark.parametrize("text", ["", "10", "10@900s+300s", "-1x@9s+3s", "2x@9m+3s", "2x@9s", "2x@9s+3s:"])
def test_a_spike_that_is_not_understood(text: str) -> None:
    with pytest.raises(SettingsError, match="like 10x@900s"):
        parse_spike(text)


def test_a_spike_that_does_not_last() -> None:
    with pytest.raises(SettingsError, match="lasts 0 s"):
        parse_spike("2x@9s+0s")


def test_a_spike_repeats_its_tier_inside_its_span() -> None:
    made = with_spikes(arrivals(), [Spike(3.0, 20.0, 10.0, "free")], window_s=WINDOW_S, seed=3)
    counts = Counter(each.tenant for each in made)
    for each in arrivals():
        inside = 20.0 <= each.at_s < 30.0 and each.tier == "free"
        assert counts[each.tenant] == (3 if inside else 1)
    assert sum(20.0 <= each.at_s < 30.0 for each in made) == 20 + 3 * 20
    assert [each.at_s for each in made] == sorted(each.at_s for each in made)


def test_a_fraction_is_by_chance_and_the_window_ends_a_spike() -> None:
    made = with_spikes(arrivals(), [Spike(1.5, 50.0, 900.0)], window_s=WINDOW_S, seed=3)
    assert len(made) == pytest.approx(200 + 300, abs=25)
    assert max(each.at_s for each in made) < WINDOW_S


def test_spikes_that_overlap_multiply() -> None:
    spikes = [Spike(2.0, 0.0, 100.0), Spike(3.0, 0.0, 100.0)]
    assert len(with_spikes(arrivals(), spikes, window_s=WINDOW_S, seed=3)) == 6 * 400
