"""The picture that the policy decides from, taken from the store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from callsheet.beat.controllers import takers
from callsheet.records.lanes import Desired, Waiting
from callsheet.routing.fleet import FleetRules
from callsheet.routing.placement import homes
from callsheet.routing.queues import queue_name, worker_of
from callsheet.routing.seats import Seat, take_seats
from callsheet.routing.snapshot import MEMORY, Memory, Snapshot
from callsheet.store.protocol import Store


class Eyes(Protocol):
    """What a look needs; the controllers' hands have it."""

    @property
    def store(self) -> Store:
        """The records."""
        ...

    @property
    def fleet(self) -> FleetRules:
        """Lanes, tiers and costs."""
        ...


@dataclass(frozen=True, slots=True)
class View:
    """Eyes without hands, for who only looks."""

    store: Store
    fleet: FleetRules


def look_at(hands: Eyes, waiting: Sequence[Waiting]) -> Snapshot:
    """Fleet, orders and memory beside what waits."""
    store = hands.store
    desired = store.desired()
    found = _seats(hands, desired)
    memory = Memory.from_json(store.recall(MEMORY))
    return Snapshot(
        now=store.now(),
        seats=found,
        waiting=[*waiting, *_expected(hands, found, {one.queue for one in waiting})],
        lanes=hands.fleet.lanes,
        desired=desired,
        memory=memory,
        tiers=hands.fleet.tiers,
        costs=hands.fleet.costs,
    )


def seats(hands: Eyes) -> list[Seat]:
    """The GPUs that take jobs."""
    return _seats(hands, hands.store.desired())


def _seats(hands: Eyes, desired: Mapping[str, Desired]) -> list[Seat]:
    """What is promised is looked at first: a promise that is claimed in between is seen to run as well."""
    store = hands.store
    promised = [worker for queue in store.published() if (worker := worker_of(queue))]
    return take_seats(
        takers(store),
        {job.worker: job for job in store.running()},
        promised,
        desired,
        hands.fleet.lanes,
        hands.fleet.costs,
        store.now(),
    )


def _expected(hands: Eyes, present: Sequence[Seat], known: Collection[str]) -> list[Waiting]:
    """Backlogs that no job has come to yet, so that the first one finds quotas, routes and subscribers."""
    classes = {seat.gpu.gpu_class for seat in present}
    found = []
    for lane, spec in hands.fleet.lanes.items():
        for gpu_class in homes(classes.intersection(spec.speed)):
            names = [queue_name(tier.name, gpu_class, lane) for tier in hands.fleet.tiers]
            found += [Waiting(name, 0, 0.0, 0.0, ()) for name in names if name not in known]
    return found
