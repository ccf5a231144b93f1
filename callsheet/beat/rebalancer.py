"""Carries out what the policy decides: the whole plan on each tick, seats for waiting jobs when asked."""

from __future__ import annotations

from callsheet.beat.controllers import Hands, op
from callsheet.beat.look import MEMORY, look_at
from callsheet.routing.queues import direct_queue, parse_queue
from callsheet.routing.rebalance import Plan, rebalance, seat_heirs
from callsheet.routing.seating import Seating

HEADS = 1000  # jobs of one backlog's front that a tick looks at
FRONT = 200  # jobs of one backlog's front that may get a GPU in one tick


def seat_urgent(hands: Hands) -> int:
    """Waiting jobs of a tier that preempts get the GPUs that the policy gives them. Answers how many."""
    hands.store.take_urgent()
    preempting = {tier.name for tier in hands.fleet.tiers if tier.preempts}
    waiting = hands.store.lanes(FRONT)
    if not any(one.jobs for one in waiting if parse_queue(one.queue).tier in preempting):
        return 0
    return sum(seat_one(hands, seating) for seating in seat_heirs(look_at(hands, waiting)))


def rebalance_all(hands: Hands) -> int:
    """The whole plan. Answers how many orders it gave."""
    plan = rebalance(look_at(hands, hands.store.lanes(HEADS)))
    return carry_out(hands, plan)


def carry_out(hands: Hands, plan: Plan) -> int:
    """Every part of a plan; carried out twice it changes nothing more."""
    store = hands.store
    store.remember(MEMORY, plan.memory.to_json(), op=op())
    if plan.desired:
        store.desire(plan.desired, op=op())
    store.set_quotas(dict(plan.quotas), routes=plan.routes, op=op())
    for load in plan.loads:
        hands.load(load.gpu, load.lane)
    seated = sum(seat_one(hands, seating) for seating in plan.seatings)
    return seated + len(plan.loads)


def seat_one(hands: Hands, seating: Seating) -> bool:
    """The victim yields, and the heir's ticket goes to that worker's direct queue."""
    victim = seating.victim
    if victim is not None:
        if not hands.store.order(victim.id, victim.attempt, "yield", reason=seating.reason, op=op()):
            return False  # it has just ended: its GPU is idle
        hands.signal(victim.ticket_id, seating.gpu)
    ticket = hands.store.assign(
        seating.heir.job_id, direct_queue(seating.gpu), reason=seating.reason, op=op()
    )
    return ticket is not None and hands.publish(ticket)
