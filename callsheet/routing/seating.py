"""Which GPU a waiting job of a tier that preempts gets, and which running job yields for it.

The jobs that came first choose first. A GPU whose weights are ready comes before one that has to load; among
those the job takes the one where it starts and ends soonest. It waits when a GPU of its lane is about to end
its job anyway, since waiting is cheaper than a save and a restore.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from callsheet.records.jobs import Job
from callsheet.routing.benches import Benches
from callsheet.routing.estimates import LaneSpec
from callsheet.routing.residency import Replicas
from callsheet.routing.seats import Seat
from callsheet.routing.tiers import TierRule

ENDS_SOON_S = 0.5  # a warm GPU that ends no more than so much later is waited for
COLD_S = 2.0  # a load must let the job start so much sooner
SLOWER = 0.2  # weight of the service time there beside the time to the start


@dataclass(frozen=True, slots=True)
class Heir:
    """A waiting job that may take a GPU."""

    job_id: str
    tier: str
    lane: str
    need: str  # GPU class that it needs at least
    work_s: float  # estimated seconds on the reference GPU
    key: float  # lower ones come first
    ticket: int = 0  # number of its last ticket


@dataclass(frozen=True, slots=True)
class Seating:
    """One decision: the heir gets the GPU, once its victim has yielded if there is one."""

    heir: Heir
    gpu: str
    victim: Job | None
    loads: bool  # its weights are not there yet
    reason: str


@dataclass(frozen=True, slots=True)
class _Option:
    start_s: float  # from now
    cost_s: float  # with its share of the service time: what is compared
    seat: Seat
    kind: str  # idle, yields


class Seater:
    """Gives each seat away once. A plain object that lives for one decision round."""

    def __init__(
        self,
        seats: Sequence[Seat],
        lanes: Mapping[str, LaneSpec],
        tiers: Mapping[str, TierRule],
        spare: int,
        replicas: Replicas,
    ) -> None:
        self._lanes = lanes
        self._spare = spare  # victims that may still be taken: the rest is guaranteed to their tier
        self._replicas = replicas
        self._counted_on: set[str] = set()
        self._benches = Benches(seats, lanes, tiers)

    @property
    def counted_on(self) -> frozenset[str]:
        """GPUs whose job a waiting one wants to see ended: they are to go on with its lane."""
        return frozenset(self._counted_on)

    def seat(self, heirs: Iterable[Heir]) -> Iterator[Seating]:
        """Decide for the heirs in the order given."""
        for heir in heirs:
            decided = self._decide(heir) if heir.lane in self._lanes else None
            if decided is not None:
                yield decided

    def _decide(self, heir: Heir) -> Seating | None:
        best = min(self._warm(heir), key=_rank, default=None)
        ending = self._ending(heir, best)
        starts_s = ending.frees_s if ending else best.start_s if best else math.inf
        cold = self._cold(heir) if starts_s > COLD_S else None
        if cold is not None and cold.start_s + COLD_S < starts_s:
            return self._take(heir, cold)
        if ending is not None:
            self._benches.take(ending)  # its end is counted on: nobody else waits for it
            self._counted_on.add(ending.gpu.name)
            return None
        return self._take(heir, best) if best else None

    def _ending(self, heir: Heir, best: _Option | None) -> Seat | None:
        """The GPU of its lane that ends first, unless it does better to take the best one that is ready."""
        ending = self._benches.ending(heir.lane, heir.need)
        if ending is None or best is None:
            return ending
        return ending if best.kind != "idle" and ending.frees_s <= best.start_s + ENDS_SOON_S else None

    def _warm(self, heir: Heir) -> Iterator[_Option]:
        for seat in self._benches.warm(heir.lane, heir.need, yielding=self._spare > 0):
            yield self._option(seat, heir, 0.0)

    def _cold(self, heir: Heir) -> _Option | None:
        """A GPU that loads the weights for it."""
        spec, best = self._lanes[heir.lane], None
        for seat in self._benches.cold(heir.lane, heir.need, yielding=self._spare > 0):
            evicted = self._replicas.evicted(seat, heir.lane)
            if evicted is None:
                continue
            option = self._option(seat, heir, spec.load_s, worse_s=evicted[0] * SLOWER)
            if best is None or _rank(option) < _rank(best):
                best = option
        return best

    def _option(self, seat: Seat, heir: Heir, load_s: float, worse_s: float = 0.0) -> _Option:
        kind, begins_s = ("idle", 0.0) if seat.idle else ("yields", seat.yields_s)
        service_s = self._lanes[heir.lane].service_s(heir.work_s, seat.gpu.gpu_class)
        start_s = begins_s + load_s
        return _Option(start_s, start_s + SLOWER * service_s + worse_s, seat, kind)

    def _take(self, heir: Heir, option: _Option) -> Seating:
        seat, loads = option.seat, heir.lane not in option.seat.warm
        self._benches.take(seat)
        victim = seat.job if option.kind == "yields" else None
        if victim is not None:
            self._spare -= 1
        if loads:
            evicted = self._replicas.evicted(seat, heir.lane)
            self._replicas.swap(seat.gpu.gpu_class, heir.lane, evicted[1] if evicted else ())
        return Seating(heir, seat.gpu.name, victim, loads, _words(heir, option, loads))


def _rank(option: _Option) -> tuple[float, str]:
    return option.cost_s, option.seat.gpu.name


def _words(heir: Heir, option: _Option, loads: bool) -> str:
    gpu, job = option.seat.gpu, option.seat.job
    there = f"{gpu.name} loads {heir.lane or 'its model'} for it" if loads else f"{gpu.name} has its weights"
    if job is None or option.kind == "idle":
        return f"{there} and is idle"
    return (
        f"no GPU of its lane is idle; {there}; {job.tier} job {job.id} there yields in about "
        f"{option.seat.yields_s:.1f} s and would have run {option.seat.frees_s:.0f} s more"
    )
