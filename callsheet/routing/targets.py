"""How many GPUs of each class each lane should have: a linear program, solved every few seconds.

Over x[class, demand] (GPUs at work on it), new replicas z[class, lane] >= x - warm, served work s <= demand,
and for each tier the fraction theta <= 1 of its demand that every lane gets at least:

    maximise  sum of weight[tier] * theta[tier] * demand[tier] + 0.3 * s
              - price[class] * (min(load_s / 30 s, 1) * z + 0.001 * x)

theta makes all lanes of a tier advance alike, so that the oldest jobs go first whatever their model; the term
in z is the hysteresis: weights are moved only for what serves more than their loading costs. That cost has an
upper end, so that a model which loads for minutes is not left waiting for ever.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from callsheet.records.gpus import Gpu
from callsheet.routing.classes import KNOWN
from callsheet.routing.demand import Demand
from callsheet.routing.estimates import LaneSpec
from callsheet.routing.optimise import LinearProgram
from callsheet.routing.tiers import TierRule

URGENT_WEIGHT = 20.0  # of a tier that preempts, against 1 of one that waits
SERVED = 0.3  # worth of work that is served beyond what theta promises to all
MOVE_S = 30.0  # a move shall have paid for itself in so many seconds, or in as many as it loads
AT_WORK = 1e-3  # price of a GPU at work, so that no more are called for than there is work

Table = dict[str, dict[str, float]]  # class -> lane -> GPUs


def able(spec: LaneSpec | None, gpu_class: str, need: str) -> bool:
    """Whether GPUs of a class run the jobs of a lane that were placed on ``need``."""
    if spec is None or spec.speed.get(gpu_class, 0.0) <= 0:
        return False
    if gpu_class not in KNOWN or need not in KNOWN:
        return gpu_class == need
    return KNOWN[gpu_class].usable_gib >= KNOWN[need].usable_gib


def runs(spec: LaneSpec | None, gpu: Gpu, need: str) -> bool:
    """Whether this very GPU does, which may be a part of a card."""
    needed_gib = math.floor(KNOWN[need].usable_gib) if need in KNOWN else 0
    return able(spec, gpu.gpu_class, need) and gpu.vram_gib >= needed_gib


def targets(
    wanted: Sequence[Demand],
    gpus: Mapping[str, int],
    warm: Mapping[str, Mapping[str, int]],
    lanes: Mapping[str, LaneSpec],
    tiers: Iterable[TierRule],
) -> Table:
    """GPUs per class and lane. ``gpus``: class -> how many; ``warm``: class -> lane -> GPUs that have it."""
    program = LinearProgram()
    at_work = _at_work(program, wanted, gpus, lanes)
    _replicas(program, at_work, warm, lanes)
    _serve(program, wanted, at_work, lanes, tiers)
    values = program.solve() if at_work else []
    table: Table = {gpu_class: {} for gpu_class in gpus}
    for (gpu_class, lane, _), x in at_work.items():
        table[gpu_class][lane] = table[gpu_class].get(lane, 0.0) + values[x]
    return table


def _at_work(
    program: LinearProgram, wanted: Iterable[Demand], gpus: Mapping[str, int], lanes: Mapping[str, LaneSpec]
) -> dict[tuple[str, str, str], int]:
    """x: GPUs of a class at work on one lane and need. No class gives more than it has."""
    pairs = sorted({(one.lane, one.need) for one in wanted})
    made = {}
    for gpu_class, count in gpus.items():
        own = [(gpu_class, *pair) for pair in pairs if able(lanes.get(pair[0]), gpu_class, pair[1])]
        made.update({key: program.variable(-AT_WORK * _price(gpu_class)) for key in own})
        if own:
            program.limit({made[key]: 1.0 for key in own}, float(count))
    return made


def _replicas(
    program: LinearProgram,
    at_work: Mapping[tuple[str, str, str], int],
    warm: Mapping[str, Mapping[str, int]],
    lanes: Mapping[str, LaneSpec],
) -> None:
    """z: new replicas, beyond those that are warm."""
    of_lane: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for (gpu_class, lane, _), x in at_work.items():
        of_lane[gpu_class, lane].append(x)
    for (gpu_class, lane), xs in of_lane.items():
        z = program.variable(-_price(gpu_class) * min(lanes[lane].load_s / MOVE_S, 1.0))
        have = warm.get(gpu_class, {}).get(lane, 0)
        program.limit({**dict.fromkeys(xs, 1.0), z: -1.0}, float(have))


def _price(gpu_class: str) -> float:
    return KNOWN[gpu_class].price if gpu_class in KNOWN else 1.0


def _serve(
    program: LinearProgram,
    wanted: Iterable[Demand],
    at_work: Mapping[tuple[str, str, str], int],
    lanes: Mapping[str, LaneSpec],
    tiers: Iterable[TierRule],
) -> None:
    """s: served work of each demand, at least theta of it, and no more than the GPUs at work on it do."""
    served: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for tier in tiers:
        own = [one for one in wanted if one.tier == tier.name]
        weight = URGENT_WEIGHT if tier.preempts else 1.0
        theta = program.variable(weight * sum(one.per_s for one in own), at_most=1.0)
        for one in own:
            s = program.variable(SERVED, at_most=one.per_s)
            program.limit({theta: one.per_s, s: -1.0}, 0.0)
            served[one.lane, one.need].append(s)
    for (lane, need), work in served.items():
        speed = {x: -lanes[lane].speed[c] for (c, of, n), x in at_work.items() if (of, n) == (lane, need)}
        program.limit({**dict.fromkeys(work, 1.0), **speed}, 0.0)
