"""Properties of the policy: what holds for every picture of a fleet, and for every life of its tenants."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Job
from callsheet.records.lanes import Waiting
from callsheet.routing.benches import AGED, NEAR_END
from callsheet.routing.classes import KNOWN
from callsheet.routing.estimates import Costs, LaneSpec
from callsheet.routing.queues import parse_queue, queue_name
from callsheet.routing.rebalance import rebalance
from callsheet.routing.seats import Seat, take_seats
from callsheet.routing.shares import lendable
from callsheet.routing.snapshot import Snapshot, waiting_jobs
from callsheet.routing.targets import able
from callsheet.routing.tiers import FREE, PRO
from callsheet.store.memory import MemoryStore
from tests.support.clock import Clock
from tests.support.jobs import new_job, op
from tests.support.snapshots import NOW, carried_out, gpu, job, lane, needs, waiting

SOME = settings(max_examples=60, deadline=None)
CLASSES = ("a100", "h100", "l40s")
LANES = ("cog", "flux", "hunyuan", "ltx", "mochi", "wan")
TICKS = 20  # two moves a tick, at most 30 GPUs, and what settles after them
ORDER = st.sampled_from(["", "", "", "yield"])
SECONDS = st.integers(0, 4000).map(float)


@st.composite
def lane_specs(draw: st.DrawFn) -> dict[str, LaneSpec]:
    """Lanes that at least one class runs; what they hold in memory fits into each class that runs them."""
    found = {}
    for name in LANES[: draw(st.integers(1, len(LANES)))]:
        vram_gb = float(draw(st.integers(5, 70)))
        able_to = [c for c in CLASSES if vram_gb <= KNOWN[c].usable_gib]
        speed = {c: draw(st.sampled_from([0.4, 1.0, 1.7])) for c in draw(_some_of(able_to))}
        found[name] = lane(name, vram_gb=vram_gb, load_s=float(draw(st.integers(1, 60))), speed=speed)
    return found


def _some_of(items: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(items), min_size=1, unique=True)


@st.composite
def gpus(draw: st.DrawFn, index: int, specs: dict[str, LaneSpec]) -> Gpu:
    """A GPU that holds the weights of some lanes that it runs, as many as it has room for."""
    gpu_class = draw(st.sampled_from(CLASSES))
    warm, room = [], float(KNOWN[gpu_class].vram_gib)
    for name in draw(st.lists(st.sampled_from(sorted(specs)), unique=True)):
        if gpu_class in specs[name].speed and specs[name].vram_gb <= room:
            warm.append(name)
            room -= specs[name].vram_gb
    return gpu(gpu_class, index, warm=warm)


@st.composite
def running(draw: st.DrawFn, one: Gpu) -> Job:
    """A job of one of the GPU's lanes, at any point of its life."""
    step, steps, waited = draw(st.integers(0, 8)), 8, draw(SECONDS)
    return job(
        f"on-{one.name}",
        tier=draw(st.sampled_from(["pro", "free", "free"])),
        of=draw(st.sampled_from(one.resident)),
        need=one.gpu_class,
        step=step,
        steps=steps,
        phase=draw(st.sampled_from(["load", "denoise", "denoise", "denoise", "decode", "store"])),
        order=draw(ORDER),
        step_s=draw(st.sampled_from([0.0, 0.5, 4.0])),
        preemptions=draw(st.integers(0, 4)),
        created_at=NOW - waited - 10,
        started_at=NOW - 10,
        claimed_at=NOW - 10,
        stepped_at=NOW - draw(st.integers(0, 3)),
    )


@st.composite
def backlogs(draw: st.DrawFn, specs: dict[str, LaneSpec]) -> list[Waiting]:
    """Jobs of both tiers, placed on classes that some GPU of the lane's classes covers."""
    queues = [
        queue_name(tier, need, name)
        for tier in ("pro", "free")
        for name, spec in specs.items()
        for need in CLASSES
        if any(able(spec, c, need) for c in CLASSES)
    ]
    chosen = draw(st.lists(st.sampled_from(queues), unique=True, max_size=8))
    return [
        waiting(
            queue,
            draw(st.integers(0, 6)),
            work_s=float(draw(st.integers(1, 200))),
            key=NOW - draw(SECONDS),
        )
        for queue in chosen
    ]


@st.composite
def pictures(draw: st.DrawFn) -> Snapshot:
    """Any fleet of 1 to 30 GPUs, with orders from before, promises and two tiers of waiting jobs."""
    specs = draw(lane_specs())
    fleet = [draw(gpus(index, specs)) for index in range(draw(st.integers(1, 30)))]
    busy = [one for one in fleet if one.resident and draw(st.sampled_from([0, 1]))]
    jobs = {one.name: draw(running(one)) for one in busy}
    promised = [one.name for one in fleet if draw(st.integers(0, 5)) == 0]
    share = draw(st.sampled_from([0.0, 0.05, 0.3, 1.0]))
    return Snapshot(
        now=NOW,
        seats=take_seats(fleet, jobs, promised, {}, specs, Costs(), NOW),
        waiting=draw(backlogs(specs)),
        lanes=specs,
        tiers=(PRO, replace(FREE, share=share)),
    )


def seat_of(picture: Snapshot, name: str) -> Seat:
    return next(one for one in picture.seats if one.gpu.name == name)


@SOME
@given(pictures())
def test_no_job_is_put_on_a_class_that_it_does_not_fit(picture: Snapshot) -> None:
    plan = rebalance(picture)
    for seating in plan.seatings:
        gpu_class = seat_of(picture, seating.gpu).gpu.gpu_class
        assert able(picture.lanes[seating.heir.lane], gpu_class, seating.heir.need)
    for load in plan.loads:
        spec, gpu_class = picture.lanes[load.lane], seat_of(picture, load.gpu).gpu.gpu_class
        served = needs(picture.waiting, load.lane) or {gpu_class}
        assert any(able(spec, gpu_class, need) for need in served)
    for name, wish in plan.desired.items():
        gpu_class = seat_of(picture, name).gpu.gpu_class
        for queue in map(parse_queue, wish.queues):
            assert able(picture.lanes[queue.lane], gpu_class, queue.gpu_class)


@SOME
@given(pictures())
def test_no_ticket_goes_where_no_worker_could_run_it(picture: Snapshot) -> None:
    for backlog, queues in rebalance(picture).routes.items():
        name = parse_queue(backlog)
        for queue in map(parse_queue, queues[:-1]):
            assert (queue.tier, queue.lane) == (name.tier, name.lane)
            assert able(picture.lanes[name.lane], queue.gpu_class, name.gpu_class)
        assert queues[-1] == backlog or backlog in queues


@SOME
@given(pictures())
def test_the_protected_are_never_asked_to_yield(picture: Snapshot) -> None:
    for seating in rebalance(picture).seatings:
        if (victim := seating.victim) is None:
            continue
        assert victim.tier == "free"
        assert not victim.order
        assert victim.phase not in NEAR_END
        assert victim.preemptions < FREE.max_preemptions
        assert victim.started_at - victim.created_at < AGED * FREE.longest_wait_s
        assert not seat_of(picture, seating.gpu).promised


@SOME
@given(pictures())
def test_no_gpu_and_no_job_is_given_twice(picture: Snapshot) -> None:
    plan = rebalance(picture)
    given_away = [one.gpu for one in plan.seatings] + [one.gpu for one in plan.loads]
    assert len(set(given_away)) == len(given_away)
    heirs = [one.heir.job_id for one in plan.seatings]
    assert len(set(heirs)) == len(heirs)


@SOME
@given(pictures())
def test_a_guaranteed_share_is_never_broken(picture: Snapshot) -> None:
    victims = [one for one in rebalance(picture).seatings if one.victim is not None]
    assert len(victims) <= lendable(picture.seats, waiting_jobs(picture), picture.tiers)


@SOME
@given(pictures())
def test_what_is_loaded_fits_beside_what_stays(picture: Snapshot) -> None:
    plan = rebalance(picture)
    for load in plan.loads:
        one = seat_of(picture, load.gpu)
        stays = (one.warm - set(load.evicts)) | {load.lane}
        assert set(load.evicts) <= one.warm
        assert sum(picture.lanes[name].vram_gb for name in stays) <= one.gpu.vram_gib
        assert set(plan.desired[load.gpu].keep) == stays - {load.lane}


@SOME
@given(pictures())
def test_the_same_picture_gives_the_same_plan(picture: Snapshot) -> None:
    assert rebalance(picture) == rebalance(picture)


@SOME
@given(pictures())
def test_a_gpu_that_was_ordered_something_gets_no_other_order_before_it_is_done(picture: Snapshot) -> None:
    plan = rebalance(picture)
    again = rebalance(carried_out(picture, plan))
    seated = {one.gpu for one in plan.seatings}
    assert seated.isdisjoint(one.gpu for one in again.seatings)
    assert (seated | {one.gpu for one in plan.loads}).isdisjoint(one.gpu for one in again.loads)
    heirs = {one.heir.job_id for one in plan.seatings}
    assert heirs.isdisjoint(one.heir.job_id for one in again.seatings)


@SOME
@given(pictures())
def test_subscriptions_settle_within_three_ticks_of_the_last_order(picture: Snapshot) -> None:
    quiet = 0
    for _ in range(TICKS):
        plan = rebalance(picture)
        if not (plan.desired or plan.loads or plan.seatings):
            return
        quiet = 0 if plan.loads or plan.seatings else quiet + 1
        assert quiet <= 3
        picture = carried_out(picture, plan)
    raise AssertionError("it asks for more and more")


@dataclass(frozen=True)
class Deed:
    """A job that a tenant submits, or (tier alone) a release, so many seconds after the one before."""

    after_s: float
    tier: str
    tenant: str = ""
    charge_s: float = 0.0


CENTISECONDS = st.integers(0, 5000).map(lambda n: n / 100)
TIER = st.sampled_from(["pro", "free"])
DEEDS = st.one_of(
    st.builds(Deed, CENTISECONDS, TIER, st.sampled_from("abc"), CENTISECONDS),
    st.builds(Deed, CENTISECONDS, TIER),
)


@SOME
@given(st.lists(DEEDS, max_size=40))
def test_the_virtual_time_of_a_tenant_and_of_a_tier_never_goes_back(life: list[Deed]) -> None:
    clock = Clock()
    store = MemoryStore(clock)
    tags: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for deed in life:
        clock.advance(deed.after_s)
        leads = dict(store._ledger.leads)
        queue = queue_name(deed.tier, "a100")
        if deed.tenant:
            new = replace(new_job(queue=queue, tier=deed.tier, tenant=deed.tenant), charge_s=deed.charge_s)
            tags[deed.tier, deed.tenant].append(store.get(store.submit(new, op=op()).job_id).fair_tag)
        else:
            store.set_quotas({queue: len(store.published()) + 1000}, op=op())
            store.release(queue, op=op())
        assert all(store._ledger.leads[tier] >= lead for tier, lead in leads.items())
        assert all(turns == sorted(turns) for turns in tags.values())
