"""Scenario files."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from callsheet.errors import SettingsError
from callsheet.simulator.capacity import work_by_model
from callsheet.simulator.generate import Stream, Traffic, generate, write_trace
from callsheet.simulator.reading import read_scenario
from callsheet.simulator.scenario import Costs, Death, Fleet, Spike, TierSpec

FLEET = """
[[fleet]]
class = "a100"
count = 4
vram_gb = 80
[[fleet]]
class = "l40s"
count = 2
vram_gb = 48
"""
TIERS = """
[tiers.pro]
share = 0.9
[tiers.free]
share = 0.05
longest_wait_s = 3600
"""
SIZES = """
[sizes.S]
vram_gb = 20
speed = {a100 = 1.0, l40s = 0.65}
[sizes.L]
vram_gb = 60
speed = {a100 = 1.5, l40s = 3.0, h100 = 2.2}
load_s = 5
"""
MODELS = """
[models]
pattern = "SL"
fold = 2
"""
GENERATE = """
[generate]
span_s = 100
models = 5
[[generate.stream]]
tier = "pro"
jobs = 60
cv = 3
peak = 4
[[generate.stream]]
tier = "free"
jobs = 90
cv = 1
"""
GOOD = "window_s = 90\n" + FLEET + TIERS + SIZES + MODELS + GENERATE
TRACE = "arrival_s,tenant,tier,model,service_s,steps\n"
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def file(folder: Path, text: str, name: str = "small.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def faults(folder: Path, text: str) -> str:
    with pytest.raises(SettingsError) as told:
        read_scenario(file(folder, text))
    return str(told.value)


def test_a_whole_file(tmp_path: Path) -> None:
    scenario = read_scenario(file(tmp_path, GOOD))
    assert (scenario.name, scenario.window_s, scenario.seed, scenario.load) == ("small", 90.0, 3, 0.0)
    assert scenario.fleets == (Fleet("a100", 4, 80.0), Fleet("l40s", 2, 48.0))
    assert scenario.tiers == (TierSpec("pro", 0.9), TierSpec("free", 0.05, 3600.0))
    assert scenario.costs == Costs()
    small, large = scenario.models
    assert (small.name, small.vram_gb, small.load_s) == ("m0", 20.0, 11.0)
    assert small.speed == {"a100": 1.0, "l40s": 0.65}
    assert (large.name, large.load_s, large.speed) == ("m1", 5.0, {"a100": 1.5})
    assert all(each.at_s < 90.0 and each.model in {"m0", "m1"} for each in scenario.arrivals)


def test_two_readings_are_equal(tmp_path: Path) -> None:
    path = file(tmp_path, GOOD)
    assert (
        read_scenario(path, load=0.5)
        == read_scenario(path, load=0.5)
        != read_scenario(path, load=0.5, seed=4)
    )


def test_what_is_given_goes_before_the_file(tmp_path: Path) -> None:
    text = GOOD + "[[spike]]\nfactor = 2\nbegins_s = 10\nlasts_s = 5\n"
    given = ("3x@40s+5s:free", Spike(2.0, 60.0, 5.0))
    scenario = read_scenario(file(tmp_path, text), load=0.5, seed=7, window_s=80.0, spikes=given)
    assert (scenario.load, scenario.seed, scenario.window_s) == (0.5, 7, 80.0)
    assert scenario.spikes == (Spike(2.0, 10.0, 5.0), Spike(3.0, 40.0, 5.0, "free"), Spike(2.0, 60.0, 5.0))


def test_load_scales_the_work(tmp_path: Path) -> None:
    path = file(tmp_path, GOOD)
    low, high = (sum(work_by_model(read_scenario(path, load=load).arrivals).values()) for load in (2.0, 8.0))
    assert high / low == pytest.approx(4.0, rel=0.2)


def test_ranks_are_counted_before_rows_are_dropped(tmp_path: Path) -> None:
    rows = ["1,t,pro,rare,4,9", *(f"{at},t,pro,Often,4,9" for at in (2, 95, 96)), "3,t,free,last,4,9"]
    trace = file(tmp_path, TRACE + "\n".join(rows), "trace.csv")
    scenario = read_scenario(file(tmp_path, GOOD), trace=trace)
    assert [each.model for each in scenario.arrivals] == ["m0", "m0", "m1"]  # ranks: Often, last, rare
    alone = read_scenario(file(tmp_path, GOOD.replace("fold = 2", "fold = 0")), trace=trace)
    assert [(each.name, each.vram_gb) for each in alone.models] == [
        ("often", 20.0),
        ("last", 60.0),
        ("rare", 20.0),
    ]
    assert [each.model for each in alone.arrivals] == ["rare", "often", "last"]


def test_listed_models(tmp_path: Path) -> None:
    text = (
        FLEET + TIERS + SIZES + '[[model]]\nname = "wan"\nsize = "L"\nload_s = 3\n'
        '[[model]]\nname = "ltx.2"\nvram_gb = 30\nspeed = {a100 = 2}\n'
    )
    trace = file(tmp_path, TRACE + "1,t,pro,Wan,4,9\n2,t,free,ltx.2,4,9\n", "trace.csv")
    scenario = read_scenario(file(tmp_path, text), trace=trace)
    assert [(each.name, each.vram_gb, each.load_s) for each in scenario.models] == [
        ("wan", 60.0, 3.0),
        ("ltx.2", 30.0, 16.0),
    ]
    assert [each.model for each in scenario.arrivals] == ["wan", "ltx.2"]
    generated = read_scenario(file(tmp_path, text + GENERATE.replace("models = 5\n", "")))
    assert set(Counter(each.model for each in generated.arrivals)) == {"wan", "ltx.2"}
    strange = file(tmp_path, TRACE + "1,t,pro,other,4,9\n", "strange.csv")
    with pytest.raises(SettingsError, match=r"jobs of other, which no \[\[model\]\] names"):
        read_scenario(file(tmp_path, text), trace=strange)


def test_deaths_come_in_order(tmp_path: Path) -> None:
    deaths = '[[death]]\nat_s = 50\nclass = "l40s"\ncount = 2\n'
    deaths += '[[death]]\nat_s = 5\nclass = "a100"\nback_after_s = 9\n'
    scenario = read_scenario(file(tmp_path, GOOD + deaths))
    assert scenario.deaths == (Death(5.0, "a100", 1, 9.0), Death(50.0, "l40s", 2))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("window_s = 90", "windows = 90", "unknown key windows; did you mean window_s?"),
        ("window_s = 90", "window_s = 0", "window_s is 0; allowed: a number above 0"),
        ("window_s = 90", "load = -1", "load is -1; allowed: a number from 0 up"),
        ("window_s = 90", "load = nan", "load is nan"),
        ("window_s = 90", "seed = 1.5", "seed is 1.5; allowed: a whole number"),
        ("window_s = 90", "noise = true", "noise is True"),
        ("window_s = 90", "costs = 3", "costs is 3; allowed: a table"),
        ('"l40s"\ncount = 2', '"l40"\ncount = 2', "[[fleet]] 2: class is 'l40'; allowed: t4,"),
        ("count = 4", "count = 0", "[[fleet]] 1: count is 0"),
        ("count = 4\n", "", "[[fleet]] 1: count is missing"),
        ('class = "l40s"', 'class = "a100"', "class a100 stands there twice"),
        ("share = 0.05", "share = 0.5", "[tiers]: the shares add up to 1.4"),
        ("[tiers.free]", "[tiers.Free]", "tier 'Free'; allowed: lower-case"),
        ("vram_gb = 60", "vram_gb = 100", "[sizes.L]: it runs nowhere: it needs 100 GB"),
        ("h100 = 2.2", "h1000 = 2.2", "[sizes.L.speed]: unknown key h1000; did you mean h100?"),
        ('"SL"', '"SX"', "[models]: pattern has the letter X"),
        ('pattern = "SL"', "", "give one of both"),
        ("fold = 2", "fold = 2\nload_gb_per_s = 0", "[models]: load_gb_per_s is 0"),
        ("cv = 3", "cv = 0", "stream pro: cv is above 0"),
        ("peak = 4", "peek = 4", "[[generate.stream]] 1: unknown key peek; did you mean peak?"),
        ("models = 5", "models = 0", "[generate]: models is 0"),
        ("models = 5", "least_s = 500", "least_s is above most_s"),
        (GENERATE, "[costs]\ntick_s = 0", "[costs]: tick_s is 0"),
        (GENERATE, '[[death]]\nat_s = 1\nclass = "l40s"\ncount = 3', "3 l40s cannot die: the fleet has 2"),
        (GENERATE, "[[spike]]\nfactor = 2\nbegins_s = 95\nlasts_s = 1", "spike 1 begins at 95 s"),
        (
            GENERATE,
            '[[spike]]\nfactor = 2\nbegins_s = 9\nlasts_s = 1\ntier = "vip"',
            "spike 1 is of tier vip",
        ),
        (GENERATE, '[[model]]\nname = "x"\nsize = "Q"', "[[model]] 1: size is 'Q'; allowed: S, L"),
        (GENERATE, "[generate]\nstream = 3", "stream is 3; allowed: tables [[generate.stream]]"),
        ("window_s = 90", "window_s =", "cannot be read as TOML"),
        ('tier = "free"', 'tier = "vip"', "the traffic has jobs of tier vip; the scenario has pro, free"),
    ],
)
def test_faults(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert GOOD.count(old) == 1
    assert says in faults(tmp_path, GOOD.replace(old, new))


def test_all_faults_at_once(tmp_path: Path) -> None:
    told = faults(tmp_path, 'load = "much"\nnosie = 1\n[[fleet]]\nclass = "x"\n')
    for says in (
        "load is 'much'",
        "nosie; did you mean noise",
        "class is 'x'",
        "count is missing",
        "no tiers",
    ):
        assert says in told


def test_a_missing_file_and_an_empty_window(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="does not exist"):
        read_scenario(tmp_path / "none.toml")
    trace = file(tmp_path, TRACE + "500,t,pro,m,4,9\n", "trace.csv")
    with pytest.raises(SettingsError, match="no job arrives before 90 s"):
        read_scenario(file(tmp_path, GOOD), trace=trace)


def test_the_scenarios_of_the_repository(tmp_path: Path) -> None:
    streams = (Stream("pro", 200, 13.0, 12.8), Stream("free", 400, 1.1))
    write_trace(generate(replace(Traffic(), streams=streams), 3), tmp_path / "trace.csv")
    folded = read_scenario(BENCHMARKS / "azure-hour.toml", trace=tmp_path / "trace.csv")
    alone = read_scenario(BENCHMARKS / "azure-hour-86.toml", trace=tmp_path / "trace.csv")
    assert [each.name for each in folded.models] == [f"m{rank}" for rank in range(8)]
    assert [each.vram_gb for each in folded.models] == [38, 20, 20, 60, 20, 38, 20, 38]
    assert len(alone.models) > 30
    assert folded.fleets == alone.fleets
    assert sum(fleet.count for fleet in folded.fleets) == 240
    assert [each.work_s for each in folded.arrivals] == [each.work_s for each in alone.arrivals]
