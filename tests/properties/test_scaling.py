"""Properties of the GPUs wanted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from callsheet.routing.queues import parse_queue, queue_name
from callsheet.routing.scaling import EXACT, gpus_for, scale, work_wanted
from callsheet.routing.targets import able
from callsheet.routing.tiers import TIERS
from tests.support.snapshots import NOW, lane, lanes, seat, waiting

CLASSES = ("a100", "h100", "l40s", "l4")
SPECS = lanes(
    lane("big", speed={"h100": 2.0}),
    lane("wan", speed={"a100": 1.0, "h100": 1.8}),
    lane("ltx", speed={"a100": 1.0, "h100": 2.0, "l40s": 0.65, "l4": 0.2}),
)
QUEUES = [queue_name(tier, need, of) for tier in ("pro", "free") for need in CLASSES for of in SPECS]
DEMAND = st.dictionaries(st.sampled_from(QUEUES), st.floats(0.0, 50.0), max_size=8)
HAVE = st.dictionaries(st.sampled_from(CLASSES), st.integers(0, 30))
SOME = settings(max_examples=200, deadline=None)


def exact(rates: dict[str, float], have: dict[str, int], jobs: int = 0) -> dict[str, float]:
    queued = [waiting(queue, jobs, work_s=per_s) for queue, per_s in rates.items()]
    return gpus_for(work_wanted(queued, rates, have, SPECS, TIERS), have, SPECS)


@SOME
@given(DEMAND, HAVE)
def test_never_negative_and_no_class_that_runs_none_of_the_work(
    rates: dict[str, float], have: dict[str, int]
) -> None:
    for gpu_class, gpus in exact(rates, have).items():
        assert gpus >= 0
        assert math.isfinite(gpus)
        names = [parse_queue(queue) for queue, per_s in rates.items() if per_s > 0]
        fits = any(able(SPECS[name.lane], gpu_class, name.gpu_class) for name in names)
        assert fits or gpus == 0


@SOME
@given(DEMAND, HAVE)
def test_the_gpus_wanted_do_all_the_work_that_some_class_can(
    rates: dict[str, float], have: dict[str, int]
) -> None:
    fastest = {of: max(spec.speed.values()) for of, spec in SPECS.items()}
    least = 0.0
    for queue, per_s in rates.items():
        name = parse_queue(queue)
        if any(able(SPECS[name.lane], gpu_class, name.gpu_class) for gpu_class in SPECS[name.lane].speed):
            least += per_s / fastest[name.lane]
    assert sum(exact(rates, have).values()) >= least - EXACT


@SOME
@given(DEMAND, DEMAND, HAVE, st.integers(0, 20), st.integers(0, 20))
def test_more_work_never_wants_fewer_of_any_class(
    rates: dict[str, float], more: dict[str, float], have: dict[str, int], jobs: int, more_jobs: int
) -> None:
    both = {queue: rates.get(queue, 0.0) + more.get(queue, 0.0) for queue in {*rates, *more}}
    less, grown = exact(rates, have, jobs), exact(both, have, jobs + more_jobs)
    assert all(grown.get(gpu_class, 0.0) >= gpus - EXACT for gpu_class, gpus in less.items())


@SOME
@given(DEMAND, HAVE, st.integers(2, 200))
def test_under_constant_load_it_changes_once_at_most_and_never_after_ten_minutes(
    rates: dict[str, float], have: dict[str, int], ticks: int
) -> None:
    fleet = [seat(gpu_class, index) for gpu_class, count in have.items() for index in range(count)]
    queued = [waiting(queue, 0) for queue in rates]
    needed: Mapping[str, Sequence[tuple[float, float]]] = {}
    numbers = {}
    for tick in range(0, ticks, 7):
        told = scale(NOW + 5.0 * tick, queued, rates, fleet, SPECS, TIERS, needed)
        needed, numbers[tick] = told.needed, {c: gpus for c, (gpus, _) in told.wanted.items()}
    assert sum(one != other for one, other in pairwise(numbers.values())) <= 1
    assert all(one == numbers[0] for tick, one in numbers.items() if 5.0 * tick < 500)
