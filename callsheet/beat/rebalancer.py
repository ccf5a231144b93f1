"""Carries out what the policy decides: the whole plan on each tick, seats for waiting jobs when asked."""

from __future__ import annotations

from callsheet.beat.controllers import Hands, op
from callsheet.beat.look import look_at
from callsheet.records.decisions import Account
from callsheet.routing.account import account_of, seatings_told
from callsheet.routing.admission import ADMISSION
from callsheet.routing.queues import direct_queue, parse_queue
from callsheet.routing.rebalance import Plan, rebalance, seat_heirs
from callsheet.routing.seating import Seating
from callsheet.routing.snapshot import MEMORY, Snapshot

HEADS = 300  # jobs of one backlog's front that a tick looks at: a sample of what waits longest
FRONT = 200  # jobs of one backlog's front that may get a GPU in one tick


def seat_urgent(hands: Hands) -> int:
    """Waiting jobs of a tier that preempts get the GPUs that the policy gives them. Answers how many."""
    hands.store.take_urgent()
    preempting = {tier.name for tier in hands.fleet.tiers if tier.preempts}
    waiting = hands.store.lanes(FRONT)
    if not any(one.jobs for one in waiting if parse_queue(one.queue).tier in preempting):
        return 0
    seatings = seat_heirs(look_at(hands, waiting))
    if hands.keeps_plans:
        keep(hands, Account(tuple(seatings_told(seatings))))
    return sum(seat_one(hands, seating) for seating in seatings)


def rebalance_all(hands: Hands) -> int:
    """The whole plan. Answers how many orders it gave."""
    picture = look_at(hands, hands.store.lanes(HEADS))
    return carry_out(hands, picture, rebalance(picture))


def carry_out(hands: Hands, picture: Snapshot, plan: Plan) -> int:
    """Every part of the plan for a picture; carried out twice it changes nothing more."""
    store = hands.store
    if hands.keeps_plans:
        keep(hands, account_of(picture, plan))
    store.remember(MEMORY, plan.memory.to_json(), op=op())
    store.remember(ADMISSION, dict(plan.memory.flows), op=op())
    if plan.desired:
        store.desire(plan.desired, op=op())
    store.set_quotas(dict(plan.quotas), routes=plan.routes, op=op())
    seated = sum(seat_one(hands, seating) for seating in plan.seatings)
    return seated + len(plan.loads)


def keep(hands: Hands, account: Account) -> None:
    """For ``callsheet explain``; a tick that changed nothing leaves nothing."""
    if not account.empty:
        hands.store.keep_plan(account.to_json(), op=op())


def seat_one(hands: Hands, seating: Seating) -> bool:
    """The victim yields, and the heir's ticket goes to that worker's direct queue: both or, in vain, neither.

    A tick of another round may run at the same time, from another picture: what it changed meanwhile makes
    this seating vain.
    """
    heir, victim = seating.heir, seating.victim
    ticket = hands.store.assign(
        heir.job_id,
        direct_queue(seating.gpu),
        reason=seating.reason,
        ticket=heir.ticket,
        victim=(victim.id, victim.attempt) if victim else None,
        op=op(),
    )
    if ticket is None:
        return False
    if victim is not None:
        hands.signal(victim.ticket_id, seating.gpu)
    return hands.publish(ticket)
