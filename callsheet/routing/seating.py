"""Which GPU a waiting job of a tier that preempts gets, and which running job yields for it.

The jobs that came first choose first. A GPU whose weights are ready comes before one that has to load; among
those the job takes the one where it starts and ends soonest. It waits when a GPU of its lane is about to end
its job anyway, since waiting is cheaper than a save and a restore.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from callsheet.records.jobs import Job
from callsheet.routing.estimates import LaneSpec
from callsheet.routing.residency import Replicas
from callsheet.routing.seats import Seat
from callsheet.routing.targets import runs
from callsheet.routing.tiers import TierRule

ENDS_SOON_S = 0.5  # a warm GPU that ends no more than so much later is waited for
COLD_S = 2.0  # a load must let the job start so much sooner
SLOWER = 0.2  # weight of the service time there beside the time to the start
NEAR_END = ("decode", "store")  # phases after the last step
AGED = 0.8  # of the longest wait: a job that waited so long is protected


@dataclass(frozen=True, slots=True)
class Heir:
    """A waiting job that may take a GPU."""

    job_id: str
    tier: str
    lane: str
    need: str  # GPU class that it needs at least
    work_s: float  # estimated seconds on the reference GPU
    key: float  # lower ones come first


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
    kind: str  # idle, yields, ends


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
        self._lanes, self._tiers = lanes, tiers
        self._spare = spare  # victims that may still be taken: the rest is guaranteed to their tier
        self._replicas = replicas
        self._free = {seat.gpu.name: seat for seat in seats if not seat.promised}
        self._of_lane: dict[str, list[Seat]] = {}
        for seat in self._free.values():
            for lane in seat.warm:
                self._of_lane.setdefault(lane, []).append(seat)

    def seat(self, heirs: Iterable[Heir]) -> Iterator[Seating]:
        """Decide for the heirs in the order given."""
        for heir in heirs:
            if not self._free:
                return
            decided = self._decide(heir)
            if decided is not None:
                yield decided

    def _decide(self, heir: Heir) -> Seating | None:
        best = min(self._warm(heir), key=_rank, default=None)
        ending = min(self._ending(heir), key=lambda option: option.start_s, default=None)
        idle = best is not None and best.kind == "idle"
        if ending and not idle and (best is None or ending.start_s <= best.start_s + ENDS_SOON_S):
            cold = self._cold(heir) if ending.start_s > COLD_S else None
            if cold is None or cold.start_s + COLD_S >= ending.start_s:
                self._free.pop(ending.seat.gpu.name)  # its end is counted on: nobody else waits for it
                return None
            best = cold
        elif best is None:
            best = self._cold(heir)
        return self._take(heir, best) if best else None

    def _warm(self, heir: Heir) -> Iterator[_Option]:
        for seat in self._of_lane.get(heir.lane, ()):
            if seat.gpu.name not in self._free or not self._runs(seat, heir):
                continue
            if seat.idle:
                yield self._option(seat, heir, 0.0, "idle")
            elif self._may_yield(seat):
                yield self._option(seat, heir, seat.yields_s, "yields")

    def _ending(self, heir: Heir) -> Iterator[_Option]:
        for seat in self._of_lane.get(heir.lane, ()):
            works = seat.gpu.name in self._free and seat.job is not None and not seat.loading
            if works and self._runs(seat, heir):
                yield self._option(seat, heir, seat.frees_s, "ends")

    def _cold(self, heir: Heir) -> _Option | None:
        """A GPU that loads the weights for it."""
        spec, best = self._lanes.get(heir.lane), None
        if spec is None:
            return None
        for seat in self._free.values():
            if heir.lane in seat.warm or seat.loading or not self._runs(seat, heir):
                continue
            if not seat.idle and not self._may_yield(seat):
                continue
            evicted = self._replicas.evicted(seat, heir.lane)
            if evicted is None:
                continue
            kind, begins = ("idle", 0.0) if seat.idle else ("yields", seat.yields_s)
            option = self._option(seat, heir, begins + spec.load_s, kind, worse_s=evicted[0] * SLOWER)
            if best is None or _rank(option) < _rank(best):
                best = option
        return best

    def _runs(self, seat: Seat, heir: Heir) -> bool:
        return runs(self._lanes.get(heir.lane), seat.gpu, heir.need)

    def _option(self, seat: Seat, heir: Heir, start_s: float, kind: str, worse_s: float = 0.0) -> _Option:
        service_s = self._lanes[heir.lane].service_s(heir.work_s, seat.gpu.gpu_class)
        return _Option(start_s, start_s + SLOWER * service_s + worse_s, seat, kind)

    def _may_yield(self, seat: Seat) -> bool:
        return self._spare > 0 and may_yield(seat, self._tiers)

    def _take(self, heir: Heir, option: _Option) -> Seating:
        seat, loads = option.seat, heir.lane not in option.seat.warm
        del self._free[seat.gpu.name]
        victim = seat.job if option.kind == "yields" else None
        if victim is not None:
            self._spare -= 1
        if loads:
            evicted = self._replicas.evicted(seat, heir.lane)
            self._replicas.swap(seat.gpu.gpu_class, heir.lane, evicted[1] if evicted else ())
        return Seating(heir, seat.gpu.name, victim, loads, _words(heir, option, loads))


def may_yield(seat: Seat, tiers: Mapping[str, TierRule]) -> bool:
    """Whether the job there may be asked for its GPU."""
    job = seat.job
    if job is None or job.order or seat.promised:
        return False
    rule = tiers.get(job.tier)
    if rule is None or not rule.yields or job.preemptions >= rule.max_preemptions:
        return False
    if job.phase in NEAR_END or seat.frees_s <= seat.yields_s:
        return False  # it is about to end
    waited = job.started_at - job.created_at
    return not rule.longest_wait_s or waited < AGED * rule.longest_wait_s


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
