"""How many GPUs of each class each lane should have: a linear program, solved every few seconds.

GPUs of a class that have the same weights are a group. Over y[group, demand] (GPUs of it at work on a demand
whose weights they have), m[group] (GPUs of it that load something else), z[class, demand] (GPUs that loaded
for a demand, sum z <= sum m), served work s <= demand, and for each tier the fraction theta <= 1 of its
demand that every lane gets at least:

    maximise  sum of weight[tier] * theta[tier] * demand[tier] + 0.3 * s
              - price[class] * (min(load_s / 30 s, 1) * z + 0.001 * (y + z))

theta makes all lanes of a tier advance alike, so that the oldest jobs go first whatever their model; the term
in z is the hysteresis: weights are moved only for what serves more than their loading costs. That cost has an
upper end, so that a model which loads for minutes is not left waiting for ever. Groups matter since a GPU
with two sets of weights works on one at a time: counting each set as a GPU finds enough where there is none.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from callsheet.records.gpus import Gpu
from callsheet.routing.classes import KNOWN, price_of
from callsheet.routing.demand import Demand
from callsheet.routing.estimates import LaneSpec
from callsheet.routing.optimise import LinearProgram
from callsheet.routing.tiers import TierRule

URGENT_WEIGHT = 20.0  # of a tier that preempts, against 1 of one that waits
SERVED = 0.3  # worth of work that is served beyond what theta promises to all
MOVE_S = 30.0  # a move shall have paid for itself in so many seconds, or in as many as it loads
AT_WORK = 1e-3  # price of a GPU at work, so that no more are called for than there is work

LEAST = 0.05  # of a GPU: less of a group is not told to move

Table = dict[str, dict[str, float]]  # class -> lane -> GPUs
Holdings = Mapping[str, Mapping[frozenset[str], int]]  # class -> weights that a GPU has -> GPUs


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


@dataclass(frozen=True, slots=True)
class Aims:
    """What the program asks for."""

    targets: Table  # GPUs at work
    moves: Table  # of those, GPUs that load the lane for it
    leaves: tuple[
        tuple[str, tuple[str, ...], float], ...
    ]  # (class, weights, GPUs with these that are to move)


def aims(
    wanted: Sequence[Demand], holdings: Holdings, lanes: Mapping[str, LaneSpec], tiers: Iterable[TierRule]
) -> Aims:
    """GPUs per class and lane. ``holdings``: class -> weights that a GPU has -> GPUs."""
    pairs = sorted({(one.lane, one.need) for one in wanted})
    program, at_work = LinearProgram(), _AtWork()
    groups = []
    for gpu_class, own in _merged(holdings, {lane for lane, _ in pairs}).items():
        here = [pair for pair in pairs if able(lanes.get(pair[0]), gpu_class, pair[1])]
        groups += _fleet(program, at_work, gpu_class, own, here, lanes)
    _serve(program, wanted, at_work, lanes, tiers)
    values = program.solve() if at_work.of else []
    return Aims(
        {gpu_class: at_work.sums(values, gpu_class, at_work.of) for gpu_class in holdings},
        {gpu_class: at_work.sums(values, gpu_class, at_work.moved) for gpu_class in holdings},
        tuple(
            (gpu_class, tuple(sorted(weights)), values[left])
            for gpu_class, weights, left in groups
            if values and values[left] > LEAST
        ),
    )


class _AtWork:
    """Variables of GPUs at work, by class and (lane, need)."""

    def __init__(self) -> None:
        self.of: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
        self.moved: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)

    def sums(
        self, values: Sequence[float], gpu_class: str, among: Mapping[tuple[str, str, str], list[int]]
    ) -> dict[str, float]:
        """Lane -> GPUs of a class."""
        found: dict[str, float] = {}
        for (of, lane, _), variables in among.items():
            if of == gpu_class:
                found[lane] = found.get(lane, 0.0) + sum(values[x] for x in variables)
        return found


def _merged(holdings: Holdings, wanted: Collection[str]) -> dict[str, Counter[frozenset[str]]]:
    """Holdings, with weights that nobody wants left out."""
    found: dict[str, Counter[frozenset[str]]] = {}
    for gpu_class, own in holdings.items():
        counts = found.setdefault(gpu_class, Counter())
        for weights, count in own.items():
            counts[weights.intersection(wanted)] += count
    return found


def _fleet(
    program: LinearProgram,
    at_work: _AtWork,
    gpu_class: str,
    own: Mapping[frozenset[str], int],
    pairs: Sequence[tuple[str, str]],
    lanes: Mapping[str, LaneSpec],
) -> list[tuple[str, frozenset[str], int]]:
    """One class: each group of GPUs with the same weights works on these or moves; what moved works too.

    Answers (class, weights, the variable of the GPUs that move) of each group.
    """
    price, leaving = price_of(gpu_class), []
    for weights, count in own.items():
        warm = {pair: program.variable(-AT_WORK * price) for pair in pairs if pair[0] in weights}
        for pair, x in warm.items():
            at_work.of[gpu_class, *pair].append(x)
        leaves = program.variable()
        leaving.append((gpu_class, weights, leaves))
        program.limit({**dict.fromkeys(warm.values(), 1.0), leaves: 1.0}, float(count))
    moved = {}
    for pair in pairs:
        cost = price * min(lanes[pair[0]].load_s / MOVE_S, 1.0)
        moved[program.variable(-cost - AT_WORK * price)] = pair
    for z, pair in moved.items():
        at_work.of[gpu_class, *pair].append(z)
        at_work.moved[gpu_class, *pair].append(z)
    if moved:
        program.limit({**dict.fromkeys(moved, 1.0), **dict.fromkeys((x for _, _, x in leaving), -1.0)}, 0.0)
    return leaving


def _serve(
    program: LinearProgram,
    wanted: Iterable[Demand],
    at_work: _AtWork,
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
        speed = {
            x: -lanes[lane].speed[gpu_class]
            for (gpu_class, of, needed), variables in at_work.of.items()
            if (of, needed) == (lane, need)
            for x in variables
        }
        program.limit({**dict.fromkeys(work, 1.0), **speed}, 0.0)
