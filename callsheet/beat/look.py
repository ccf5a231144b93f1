"""The picture that the policy decides from, taken from the store."""

from __future__ import annotations

from collections.abc import Sequence

from callsheet.beat.controllers import Hands, takers
from callsheet.records.lanes import Waiting
from callsheet.routing.queues import worker_of
from callsheet.routing.seats import Seat, take_seats
from callsheet.routing.snapshot import Memory, Snapshot

MEMORY = "rebalance"  # name of what one rebalance leaves to the next


def look_at(hands: Hands, waiting: Sequence[Waiting]) -> Snapshot:
    """Fleet, orders and memory beside what waits."""
    store = hands.store
    memory = Memory.from_json(store.recall(MEMORY))
    return Snapshot(
        now=store.now(),
        seats=seats(hands),
        waiting=waiting,
        lanes=hands.fleet.lanes,
        desired=store.desired(),
        memory=memory,
        tiers=hands.fleet.tiers,
        costs=hands.fleet.costs,
    )


def seats(hands: Hands) -> list[Seat]:
    """The GPUs that take jobs."""
    store = hands.store
    return take_seats(
        takers(store),
        {job.worker: job for job in store.running()},
        (worker for queue in store.published() if (worker := worker_of(queue))),
        store.desired(),
        hands.fleet.lanes,
        hands.fleet.costs,
        store.now(),
    )
