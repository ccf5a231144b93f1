"""The plan of one tick: from a picture of the fleet to what every worker serves, loads and gives up.

Pure: the same picture gives the same plan, and a plan that was carried out asks for nothing more. ``beat``
takes the picture and carries the plan out; live and in the simulator it is the same code.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from callsheet.records.lanes import Desired, Waiting
from callsheet.routing import demand
from callsheet.routing.admission import Flows, flows
from callsheet.routing.classes import KNOWN
from callsheet.routing.estimates import rough_capacity
from callsheet.routing.idle import Queued, cold_starts, preloads
from callsheet.routing.lane_order import LaneOrder
from callsheet.routing.moves import LaneMoves, holdings, less
from callsheet.routing.queues import parse_queue
from callsheet.routing.quotas import quotas_of, routes_of
from callsheet.routing.residency import Load, Replicas
from callsheet.routing.scaling import scale
from callsheet.routing.seating import Heir, Seater, Seating
from callsheet.routing.seats import Seat
from callsheet.routing.shares import lendable
from callsheet.routing.snapshot import Memory, Snapshot, waiting_jobs
from callsheet.routing.targets import Aims, aims

TARGETS_S = 5.0  # between two solutions of the linear program


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done. Every part may be carried out again without harm."""

    desired: Mapping[str, Desired] = field(default_factory=dict)  # GPU name -> what changes
    loads: Sequence[Load] = ()  # of those, the ones that load
    seatings: Sequence[Seating] = ()
    quotas: Mapping[str, int] = field(default_factory=dict)
    routes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)


def heirs_of(waiting: Sequence[Waiting], snapshot: Snapshot) -> list[Heir]:
    """The waiting jobs of tiers that preempt, the first first."""
    preempting = {tier.name for tier in snapshot.tiers if tier.preempts}
    found = []
    for one in waiting:
        name = parse_queue(one.queue)
        if name.tier in preempting:
            found += [
                Heir(head.job_id, name.tier, name.lane, name.gpu_class, head.work_s, head.key, head.ticket)
                for head in one.heads
            ]
    return sorted(found, key=lambda heir: (heir.key, heir.job_id))


def seat_heirs(snapshot: Snapshot) -> list[Seating]:
    """GPUs for the waiting jobs of tiers that preempt: what a tick that was asked for decides."""
    heirs = heirs_of(snapshot.waiting, snapshot)
    if not heirs:
        return []
    replicas = replicas_of(snapshot, snapshot.memory)
    return list(_seater(snapshot, replicas).seat(heirs))


def rebalance(snapshot: Snapshot) -> Plan:
    """The whole plan of a tick."""
    memory = observe(snapshot)
    replicas = replicas_of(snapshot, memory)
    heirs = heirs_of(snapshot.waiting, snapshot)
    seater = _seater(snapshot, replicas)
    seatings = list(seater.seat(heirs))
    taken = seater.counted_on.union(seating.gpu for seating in seatings)
    seats = [seat for seat in snapshot.seats if seat.gpu.name not in taken]
    loads = _loads(seats, replicas, snapshot, memory, Counter(seating.heir.lane for seating in seatings))
    return Plan(
        desired=_desired(snapshot, loads, memory, replicas),
        loads=loads,
        seatings=seatings,
        quotas=quotas_of(snapshot),
        routes=routes_of(snapshot),
        memory=replace(memory, moves=less(memory.moves, _by_class(snapshot.seats, loads))),
    )


def _by_class(seats: Iterable[Seat], loads: Iterable[Load]) -> dict[str, list[str]]:
    """Class -> lanes that its GPUs load."""
    classes = {seat.gpu.name: seat.gpu.gpu_class for seat in seats}
    found: defaultdict[str, list[str]] = defaultdict(list)
    for load in loads:
        found[classes[load.gpu]].append(load.lane)
    return found


def observe(snapshot: Snapshot) -> Memory:
    """What is remembered from here on: arrival rates, peaks, and targets when they are due."""
    before, now = snapshot.memory, snapshot.now
    offered = {one.queue: one.offered_s for one in snapshot.waiting}
    past_s = now - before.at if before.at else 0.0
    since = before.since or now
    averages = demand.rates(offered, before.offered, before.rates, past_s, now - since)
    busy: Counter[str] = Counter()
    for tier in snapshot.tiers:
        if tier.preempts:
            busy += demand.busy_with(snapshot.seats, snapshot.waiting, tier.name)
    memory = replace(
        before,
        at=now,
        since=since,
        offered=offered,
        rates=averages,
        peaks=demand.peaks(now, before.peaks, busy),
    )
    memory = replace(memory, flows=_flows(snapshot))
    if now - before.targets_at < TARGETS_S:
        return memory
    scaled = scale(
        now, snapshot.waiting, averages, snapshot.seats, snapshot.lanes, snapshot.tiers, before.needed
    )
    found = _aims(snapshot, averages)
    return replace(
        memory,
        targets_at=now,
        targets=found.targets,
        moves=found.moves,
        leaves=found.leaves,
        needed=scaled.needed,
        wanted=scaled.wanted,
    )


def _flows(snapshot: Snapshot) -> dict[str, Any]:
    before = Flows.from_json(snapshot.memory.flows)
    return flows(snapshot.now, snapshot.waiting, snapshot.seats, snapshot.lanes, before).to_json()


def replicas_of(snapshot: Snapshot, memory: Memory) -> Replicas:
    """Weights in the fleet against the targets."""
    replicas = Replicas(snapshot.lanes, memory.targets, demand.cover(memory.peaks))
    replicas.count(snapshot.seats)
    return replicas


def _aims(snapshot: Snapshot, averages: Mapping[str, float]) -> Aims:
    gpus = Counter(seat.gpu.gpu_class for seat in snapshot.seats)
    wanted = demand.demands(
        snapshot.waiting, averages, snapshot.tiers, rough_capacity(gpus, snapshot.lanes.values())
    )
    return aims(wanted, holdings(snapshot.seats), snapshot.lanes, snapshot.tiers)


def _seater(snapshot: Snapshot, replicas: Replicas) -> Seater:
    spare = lendable(snapshot.seats, waiting_jobs(snapshot), snapshot.tiers)
    rules = {tier.name: tier for tier in snapshot.tiers}
    return Seater(snapshot.seats, snapshot.lanes, rules, spare, replicas)


def _loads(
    seats: Sequence[Seat], replicas: Replicas, snapshot: Snapshot, memory: Memory, seated: Counter[str]
) -> list[Load]:
    """Weights to load for what waits. ``seated``: lane -> jobs that this tick gave a GPU."""
    lanes: Counter[str] = Counter()
    work: defaultdict[str, float] = defaultdict(float)
    needs: dict[str, str] = {}
    for one in snapshot.waiting:
        name = parse_queue(one.queue)
        lanes[name.lane] += one.jobs
        work[name.lane] += one.work_s
        if one.jobs and _smaller(name.gpu_class, needs.get(name.lane)):
            needs[name.lane] = name.gpu_class
    queued = {
        lane: Queued(max(jobs - seated[lane], 0), work[lane] / jobs)
        for lane, jobs in lanes.items()
        if jobs > 0
    }
    lanes.subtract(seated)
    loads = cold_starts(seats, replicas, queued, needs)
    left = _without(seats, loads)
    loads += LaneMoves(memory, replicas).decide(left, lanes, needs)
    return loads + preloads(_without(left, loads), replicas, needs)


def _smaller(need: str, than: str | None) -> bool:
    return than is None or (
        need in KNOWN and than in KNOWN and KNOWN[need].usable_gib < KNOWN[than].usable_gib
    )


def _without(seats: Sequence[Seat], loads: Sequence[Load]) -> list[Seat]:
    gone = {load.gpu for load in loads}
    return [seat for seat in seats if seat.gpu.name not in gone]


def _desired(
    snapshot: Snapshot, loads: Sequence[Load], memory: Memory, replicas: Replicas
) -> dict[str, Desired]:
    """What changes of what every worker serves."""
    by_gpu = {load.gpu: load for load in loads}
    order = LaneOrder(snapshot, memory.targets)
    changed = {}
    for seat in snapshot.seats:
        before = snapshot.desired.get(seat.gpu.name)
        wish = _wish(seat, by_gpu.get(seat.gpu.name), before, order, replicas)
        if before is None or _differ(wish, before):
            changed[seat.gpu.name] = wish
    return changed


def _differ(one: Desired, other: Desired) -> bool:
    return (one.queues, one.keep, one.load) != (other.queues, other.keep, other.load)


def _wish(
    seat: Seat, load: Load | None, before: Desired | None, order: LaneOrder, replicas: Replicas
) -> Desired:
    loading, why = seat.loading, before.why if before else ""
    keep = before.keep if before else ()
    if load is not None:
        loading, why = load.lane, load.reason
        keep = replicas.keep_order(seat, seat.warm.difference(load.evicts))
    elif not loading and set(keep) != seat.warm:
        keep = replicas.keep_order(seat, seat.warm)
    lanes = {lane for lane in ("", *seat.gpu.resident, loading) if lane in replicas.lanes}
    queues = order.queues(seat, lanes)
    return Desired(queues=queues, keep=keep, load=loading, why=why if loading else "")
