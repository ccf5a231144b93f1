"""In which order each GPU's worker looks into its lanes.

Tier by tier; within one, the lanes that run on fewer GPUs of the class than their target come before the
others, and of equals the one whose first job is oldest. GPUs that are about to end their jobs are looked at
one after the other, the soonest first, so that they do not all go for the same lane.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from callsheet.routing.queues import parse_queue, queue_name
from callsheet.routing.seats import Seat
from callsheet.routing.shares import guaranteed
from callsheet.routing.snapshot import Snapshot, waiting_jobs
from callsheet.routing.targets import able

BUCKET_S = 5.0  # heads of lanes that are closer in time count as equally old
SOON_S = 3.0  # a GPU that ends its job within it is told which lane to take up next


class LaneOrder:
    """The orders of one tick."""

    def __init__(self, snapshot: Snapshot, targets: Mapping[str, Mapping[str, float]]) -> None:
        self._tiers = [tier.name for tier in snapshot.tiers]
        self._heads: dict[tuple[str, str], float] = {}
        self._needs: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for one in snapshot.waiting:
            name = parse_queue(one.queue)
            self._needs[name.tier, name.lane].append(name.gpu_class)
            if one.heads:
                key = one.heads[0].key
                self._heads[name.tier, name.lane] = min(self._heads.get((name.tier, name.lane), key), key)
        self._running = Counter((s.gpu.gpu_class, s.lane) for s in snapshot.seats if s.job is not None)
        self._targets = targets
        self._lanes = snapshot.lanes
        self._patient = [tier.name for tier in snapshot.tiers if not tier.preempts]
        self._cache: dict[tuple[str, frozenset[str], bool, str | None], tuple[str, ...]] = {}
        self._served: dict[tuple[str, str, str], tuple[str, ...]] = {}
        self._turned = _turned(snapshot)
        self._next = self._ending(snapshot.seats)

    def queues(self, seat: Seat, lanes: set[str]) -> tuple[str, ...]:
        """The queues of one seat that serves these lanes; seats alike share them."""
        turned = seat.gpu.name in self._turned
        key = (seat.gpu.gpu_class, frozenset(lanes), turned, self._next.get(seat.gpu.name))
        if key not in self._cache:
            self._cache[key] = self._queues(*key)
        return self._cache[key]

    def _queues(
        self, gpu_class: str, lanes: frozenset[str], turned: bool, first: str | None
    ) -> tuple[str, ...]:
        """Tier by tier, within one the lanes with the lowest rank first."""
        tiers = list(reversed(self._tiers)) if turned else self._tiers
        return tuple(
            queue
            for tier in tiers
            for lane in sorted(lanes, key=lambda lane: (self._rank(gpu_class, tier, lane, first), lane))
            for queue in self._of_lane(tier, gpu_class, lane)
        )

    def _of_lane(self, tier: str, gpu_class: str, lane: str) -> tuple[str, ...]:
        """The queue of its own class, and those that the jobs of the lane were placed on and that it runs."""
        key = (tier, gpu_class, lane)
        if key not in self._served:
            needs = self._needs[tier, lane]
            able_to = [need for need in needs if able(self._lanes.get(lane), gpu_class, need)]
            classes = dict.fromkeys((gpu_class, *able_to))
            self._served[key] = tuple(queue_name(tier, name, lane) for name in classes)
        return self._served[key]

    def _rank(self, gpu_class: str, tier: str, lane: str, first: str | None) -> tuple[float, ...]:
        head = self._heads.get((tier, lane))
        if head is None:
            return (2.0, 0.0)
        if tier not in self._patient:
            return 0.0, head // BUCKET_S
        full = self._lack(gpu_class, lane) <= 0
        return (-1.0 if lane == first else float(full)), head // BUCKET_S

    def _lack(self, gpu_class: str, lane: str) -> float:
        """GPUs of a class that should be at work on a lane beyond those that are."""
        return self._targets.get(gpu_class, {}).get(lane, 0.0) - self._running[gpu_class, lane]

    def _ending(self, seats: Sequence[Seat]) -> dict[str, str]:
        """GPU -> the lane that lacks GPUs most when its job ends, as far as one lacks any."""
        found = {}
        for seat in sorted(seats, key=lambda one: (one.frees_s, one.gpu.name)):
            if seat.frees_s > SOON_S:
                break
            if seat.job is None or seat.promised or seat.loading:
                continue
            gpu_class = seat.gpu.gpu_class
            self._running[gpu_class, seat.lane] -= 1
            waiting = [lane for lane in seat.stays if any((t, lane) in self._heads for t in self._patient)]
            lane = max(waiting, key=lambda one: (self._lack(gpu_class, one), one), default=seat.lane)
            self._running[gpu_class, lane] += 1
            if waiting and self._lack(gpu_class, lane) > -1.0:
                found[seat.gpu.name] = lane
        return found


def _turned(snapshot: Snapshot) -> frozenset[str]:
    """GPUs that serve the tiers in reverse: those that are a later tier's share."""
    waiting, yielding = waiting_jobs(snapshot), [tier for tier in snapshot.tiers if tier.yields]
    turned: set[str] = set()
    for name, count in guaranteed(snapshot.seats, waiting, yielding).items():
        left = [seat for seat in snapshot.seats if seat.gpu.name not in turned]
        turned.update(seat.gpu.name for seat in sorted(left, key=lambda one: _turns(one, name))[:count])
    return frozenset(turned)


def _turns(seat: Seat, tier: str) -> tuple[bool, bool, float, str]:
    """Those that run a job of the tier come first: they go on with the next one."""
    runs_it = seat.job is not None and seat.job.tier == tier
    return not runs_it, seat.promised, 0.0 if runs_it else seat.frees_s, seat.gpu.name
