"""Everything that says where a job is and why: read from the store, nothing is written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from callsheet.beat.look import Eyes, seats
from callsheet.records.decisions import LOAD, SERVE, Account, Decision
from callsheet.records.jobs import Event, Job
from callsheet.records.states import State
from callsheet.routing.benches import AGED
from callsheet.routing.estimates import Ends, ends
from callsheet.routing.outlook import Fit, Outlook, fits, outlook, servers
from callsheet.routing.queues import lane_of, parse_queue, worker_of
from callsheet.routing.seats import Seat

NAMED = 20  # decisions that are told of one job, the newest
GAVE_UP = ("ordered", "handed-back", "lost")  # events that tell why it left a GPU, or is to


@dataclass(frozen=True, slots=True)
class Place:
    """Where a waiting job stands. Work is estimated seconds on the reference GPU."""

    jobs: int  # before it in its own backlog
    work_s: float
    tier_jobs: int  # before it in all backlogs of its tier
    tier_work_s: float
    lane_jobs: int  # before it that want the same weights: of its tier, and of tiers that are served first
    lane_work_s: float
    turn_s: float  # how far its turn lies ahead of its tier's virtual time; 0 = it has come
    longest_wait_s: float  # of its tier; 0 = no bound
    aged: bool  # it has waited most of that


@dataclass(frozen=True, slots=True)
class Explanation:
    """What was seen of a job. What does not apply to its state is empty."""

    job: Job
    now: float  # store time
    chosen: str = ""  # the GPU that was chosen for it
    chosen_why: str = ""
    place: Place | None = None
    classes: Sequence[Fit] = ()
    gpus: Sequence[Seat] = ()  # that have its weights, the soonest free first
    expected: Outlook | None = None  # its start
    ends: Ends | None = None  # of the running attempt
    decisions: Sequence[tuple[float, Decision]] = ()  # of the last ticks, with their store time
    left: Sequence[Event] = ()  # why it left GPUs


def explain(eyes: Eyes, job_id: str) -> Explanation:
    """Where a job is, and why. Raises JobNotFound."""
    store = eyes.store
    job, now = store.get(job_id), store.now()
    events = store.events(job.id)
    left = [event for event in events if event.kind in GAVE_UP]
    if job.ended:
        return Explanation(job, now, left=left)
    spec = eyes.fleet.lanes.get(lane_of(job.queue))
    fleet = seats(eyes)
    told = _naming(job, [Account.from_json(plan) for plan in store.plans()])
    seen = Explanation(job, now, classes=fits(job, fleet, spec), decisions=told, left=left)
    if job.state is State.RUNNING:
        here = next((seat.gpu.gpu_class for seat in fleet if seat.gpu.name == job.worker), job.gpu_class)
        return replace(seen, ends=ends(job, spec, here, now))
    seen = replace(seen, gpus=servers(job, fleet, spec))
    if job.state is State.QUEUED and (chosen := worker_of(job.home)):
        why = next((event.reason for event in reversed(events) if event.kind == "assigned"), "")
        return replace(seen, chosen=chosen, chosen_why=why)
    if job.state is State.HELD:
        return seen
    place = _place(eyes, job, now)
    rules = {rule.name: rule for rule in eyes.fleet.tiers}
    expected = outlook(job, fleet, spec, rules, jobs=place.lane_jobs, work_s=place.lane_work_s)
    return replace(seen, place=place, expected=expected)


def _place(eyes: Eyes, job: Job, now: float) -> Place:
    store, lane = eyes.store, lane_of(job.queue)
    rule = eyes.fleet.tier(job.tier)
    waits = store.before(job.tier, job.start_tag) if job.state is State.PENDING else {}
    same_lane = [one for queue, one in waits.items() if parse_queue(queue).lane == lane]
    for tier in eyes.fleet.tiers:
        if tier.name == job.tier:
            break
        first = store.before(tier.name, math.inf)
        same_lane += [one for queue, one in first.items() if parse_queue(queue).lane == lane]
    own = waits.get(job.queue)
    return Place(
        jobs=own.jobs if own else 0,
        work_s=own.work_s if own else 0.0,
        tier_jobs=sum(one.jobs for one in waits.values()),
        tier_work_s=sum(one.work_s for one in waits.values()),
        lane_jobs=sum(one.jobs for one in same_lane),
        lane_work_s=sum(one.work_s for one in same_lane),
        turn_s=max(job.fair_tag - store.turn(job.tier, job.request.tenant).now, 0.0),
        longest_wait_s=rule.longest_wait_s,
        aged=0 < AGED * rule.longest_wait_s <= now - job.created_at,
    )


def _naming(job: Job, accounts: Sequence[Account]) -> list[tuple[float, Decision]]:
    """Decisions that name the job, load its lane, or change who serves its queue."""
    lane = lane_of(job.queue)
    found = [
        (account.at, one)
        for account in accounts
        for one in account.decisions
        if job.id in (one.job, one.victim)
        or (one.kind == LOAD and one.lane == lane)
        or (one.kind == SERVE and job.queue in one.queues)
    ]
    return found[-NAMED:]
