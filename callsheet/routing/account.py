"""A plan told as decisions, each with its reason in words: what ``explain`` and the dry run show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from callsheet.records.decisions import LOAD, SCALE, SEAT, SERVE, Account, Decision
from callsheet.records.lanes import Desired
from callsheet.routing.rebalance import Plan
from callsheet.routing.residency import Load
from callsheet.routing.seating import Seating
from callsheet.routing.snapshot import Memory, Snapshot

MOST = 200  # decisions told of one plan
NAMES = 20  # GPUs named in one decision
LEAST = 0.05  # of a GPU: smaller targets are not told


def account_of(snapshot: Snapshot, plan: Plan) -> Account:
    """What a plan changes, the decisions about single jobs first; equal plans are told alike."""
    loads = [load_told(one) for one in plan.loads]
    before, after = snapshot.memory, plan.memory
    decisions = [
        *seatings_told(plan.seatings),
        *loads,
        *_served(snapshot.desired, plan.desired),
        *_scaled(before, after),
    ]
    targets = _rounded(after.targets)
    changed = targets != _rounded(before.targets)
    return Account(tuple(decisions[:MOST]), targets if changed else {})


def seatings_told(seatings: Iterable[Seating]) -> list[Decision]:
    """Jobs that get a GPU."""
    return [
        Decision(
            SEAT,
            one.reason,
            gpus=(one.gpu,),
            job=one.heir.job_id,
            victim=one.victim.id if one.victim else "",
            lane=one.heir.lane,
        )
        for one in seatings
    ]


def load_told(load: Load) -> Decision:
    """Weights that a GPU is to load."""
    leaves = f"; {', '.join(load.evicts)} leave for it" if load.evicts else ""
    return Decision(LOAD, f"{load.reason}{leaves}", gpus=(load.gpu,), lane=load.lane)


def _served(before: Mapping[str, Desired], changed: Mapping[str, Desired]) -> Iterator[Decision]:
    """Subscriptions that change; GPUs that change alike are told together."""
    alike: defaultdict[tuple[tuple[str, ...], str], list[str]] = defaultdict(list)
    for name, wish in changed.items():
        had = before[name].queues if name in before else ()
        if wish.queues != had:
            alike[wish.queues, _difference(had, wish.queues)].append(name)
    for (queues, reason), names in alike.items():
        more = f" (and {len(names) - NAMES} GPUs more)" if len(names) > NAMES else ""
        yield Decision(SERVE, reason + more, gpus=tuple(names[:NAMES]), queues=queues)


def _difference(had: tuple[str, ...], queues: tuple[str, ...]) -> str:
    joins = [queue for queue in queues if queue not in had]
    leaves = [queue for queue in had if queue not in queues]
    told = []
    if joins:
        told.append(f"joins {', '.join(joins)}: it has the weights, or is to load them")
    if leaves:
        told.append(f"leaves {', '.join(leaves)}: no weights for them, or no jobs that it could run")
    if not told:
        first = next(queue for place, queue in enumerate(queues) if queue != had[place])
        told.append(f"takes {first} earlier or later: other lanes have older jobs, or lack GPUs")
    return "; ".join(told)


def _scaled(before: Memory, after: Memory) -> Iterator[Decision]:
    for gpu_class, (gpus, reason) in after.wanted.items():
        if before.wanted.get(gpu_class, (None,))[0] != gpus:
            yield Decision(SCALE, f"{gpus} of class {gpu_class} wanted: {reason}")


def _rounded(targets: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Targets as they are told: tenths of a GPU."""
    return {
        gpu_class: told
        for gpu_class, row in targets.items()
        if (told := {lane: round(gpus, 1) for lane, gpus in sorted(row.items()) if gpus >= LEAST})
    }
