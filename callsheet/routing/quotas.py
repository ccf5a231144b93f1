"""How many tickets may be out per queue, and which queues the tickets of a backlog go to.

A queue holds what idle workers take at once, and one ticket more, so that a worker that ends its job has the
next one without asking. What waits in the backlog can still change its order, class and lane.
"""

from __future__ import annotations

from collections import Counter

from callsheet.routing.classes import price_of
from callsheet.routing.queues import parse_queue, queue_name
from callsheet.routing.snapshot import Snapshot
from callsheet.routing.targets import able

SPARE = 1  # tickets beyond those for idle workers


def quotas_of(snapshot: Snapshot) -> dict[str, int]:
    """Tickets per queue: one for each idle GPU of its class that has its weights, and one more for all.

    Backlogs that no GPU here runs have none.
    """
    idle, present = _idle(snapshot), _present(snapshot)
    found: dict[str, int] = {}
    for one in snapshot.waiting:
        name = parse_queue(one.queue)
        for gpu_class in present:
            if able(snapshot.lanes.get(name.lane), gpu_class, name.gpu_class):
                found[queue_name(name.tier, gpu_class, name.lane)] = idle[gpu_class, name.lane]
    for one in snapshot.waiting:
        name = parse_queue(one.queue)
        if any(able(snapshot.lanes.get(name.lane), gpu_class, name.gpu_class) for gpu_class in present):
            found[one.queue] = found.get(one.queue, 0) + SPARE
    return found


def routes_of(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """Queues for the tickets of each backlog, the best class first, its own queue last.

    A tier that preempts takes the fastest GPU; the others take the one that costs least for the work.
    """
    preempting = {tier.name for tier in snapshot.tiers if tier.preempts}
    idle, present = _idle(snapshot), _present(snapshot)
    found = {}
    for one in snapshot.waiting:
        name = parse_queue(one.queue)
        spec = snapshot.lanes.get(name.lane)
        ready = [c for c in present if idle[c, name.lane] and able(spec, c, name.gpu_class)]
        if spec is not None and name.tier in preempting:
            ready.sort(key=lambda c: (-spec.speed[c], c))
        elif spec is not None:
            ready.sort(key=lambda c: (price_of(c) / spec.speed[c], c))
        queues = [queue_name(name.tier, gpu_class, name.lane) for gpu_class in ready]
        found[one.queue] = tuple(dict.fromkeys((*queues, one.queue)))
    return found


def _idle(snapshot: Snapshot) -> Counter[tuple[str, str]]:
    return Counter((seat.gpu.gpu_class, lane) for seat in snapshot.seats if seat.idle for lane in seat.warm)


def _present(snapshot: Snapshot) -> list[str]:
    return sorted({seat.gpu.gpu_class for seat in snapshot.seats})
