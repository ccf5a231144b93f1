"""Generated traffic has the bursts and the popularity that it promises."""

from __future__ import annotations

import statistics
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import pytest

from callsheet.errors import SettingsError
from callsheet.simulator.generate import Stream, Traffic, generate, write_trace
from callsheet.simulator.scenario import Arrival
from callsheet.simulator.trace import read_trace

SEEDS = (1, 2)
SMALL = Traffic(span_s=60.0, streams=(Stream("pro", 40, 5.0, 6.0), Stream("free", 60, 1.1)))


@lru_cache
def hour(seed: int) -> tuple[Arrival, ...]:
    return generate(Traffic(), seed)


def moments(seed: int, tier: str) -> list[float]:
    return [arrival.at_s for arrival in hour(seed) if arrival.tier == tier]


def cv(times: list[float]) -> float:
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return statistics.pstdev(gaps) / statistics.fmean(gaps)


def ten_second_peak(times: list[float]) -> float:
    """Most arrivals in any ten seconds, over their mean."""
    first = most = 0
    for last, at_s in enumerate(times):
        while at_s - times[first] >= 10.0:
            first += 1
        most = max(most, last - first + 1)
    return most / (len(times) / 351.3)


@pytest.mark.parametrize("seed", SEEDS)
def test_pro_is_bursty(seed: int) -> None:
    times = moments(seed, "pro")
    assert len(times) == 8819
    assert cv(times) == pytest.approx(13.0, rel=0.2)
    assert ten_second_peak(times) == pytest.approx(12.8, rel=0.2)


@pytest.mark.parametrize("seed", SEEDS)
def test_free_is_not(seed: int) -> None:
    times = moments(seed, "free")
    assert len(times) == 19366
    assert cv(times) == pytest.approx(1.1, rel=0.1)
    assert ten_second_peak(times) < 2.0


@pytest.mark.parametrize("seed", SEEDS)
def test_few_tenants_and_models_have_most(seed: int) -> None:
    work: Counter[str] = Counter()
    for arrival in hour(seed):
        if arrival.tier == "free":
            work[arrival.tenant] += round(1000 * arrival.work_s)
    assert work.most_common(1)[0][1] / work.total() == pytest.approx(0.045, rel=0.2)
    models = Counter(arrival.model for arrival in hour(seed)).most_common()
    assert [count for _, count in models[:3]] == pytest.approx([8765, 4209, 2683], rel=0.1)
    assert models[9][1] == pytest.approx(775, rel=0.4)


def test_work_and_steps() -> None:
    work = [arrival.work_s for arrival in hour(1)]
    assert statistics.median(work) == pytest.approx(23.0, rel=0.03)
    assert (min(work), max(work)) == (5.0, 120.0)
    assert {arrival.steps for arrival in hour(1)} == set(range(20, 51))


def test_the_seed_decides() -> None:
    assert generate(SMALL, 3) == generate(SMALL, 3) != generate(SMALL, 4)


def test_longer_traffic_has_as_many_more_jobs_inside_it() -> None:
    tiers = Counter(arrival.tier for arrival in generate(SMALL, 3, lasts_s=180.0))
    assert tiers == {"pro": 120, "free": 180}
    times = [arrival.at_s for arrival in generate(SMALL, 3, lasts_s=180.0)]
    assert times == sorted(times)
    assert 150.0 < times[-1] < 180.0


def test_streams_do_not_change_each_other() -> None:
    alone = Traffic(span_s=60.0, streams=SMALL.streams[1:])
    assert generate(alone, 3) == tuple(each for each in generate(SMALL, 3) if each.tier == "free")


@pytest.mark.parametrize("jobs", [0, 1, 2, 7])
def test_few_jobs(jobs: int) -> None:
    streams = (Stream("pro", jobs, 13.0, 12.8), Stream("free", jobs, 50.0))
    made = generate(Traffic(span_s=60.0, streams=streams), 3)
    assert len(made) == 2 * jobs
    assert all(0.0 <= arrival.at_s <= 60.0 for arrival in made)


def test_names_go_round() -> None:
    traffic = Traffic(span_s=60.0, streams=SMALL.streams, names=("a", "b"))
    assert {arrival.model for arrival in generate(traffic, 3)} == {"a", "b"}


@pytest.mark.parametrize("name", ["trace.csv", "trace.csv.gz"])
def test_what_is_written_reads_back(tmp_path: Path, name: str) -> None:
    rows = generate(SMALL, 3)
    write_trace(rows, tmp_path / name)
    assert read_trace(tmp_path / name) == rows


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be written"):
        write_trace([], tmp_path / "none" / "trace.csv")
