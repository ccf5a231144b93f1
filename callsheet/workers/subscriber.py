"""Which queues a GPU's worker serves, kept true each second.

Level-triggered: what the last rebalance desired stands in the store, and the worker's consumers are made
equal to it. A lost broadcast, a restart or a reconnect heals by itself. Until a rebalance has said anything,
a worker serves all that its GPU covers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol

from celery import bootsteps

from callsheet.catalog import Catalog
from callsheet.order import SubscriptionOrder
from callsheet.records.gpus import Gpu
from callsheet.records.lanes import Desired
from callsheet.routing.classes import KNOWN
from callsheet.routing.fit import default_need_gib
from callsheet.routing.queues import direct_queue, lane_of
from callsheet.routing.subscription import subscribe
from callsheet.settings import Settings

log = logging.getLogger(__name__)

RECONCILE_S = 1.0


class Subscriber:
    """What one GPU's worker wants to serve."""

    def __init__(self, gpu: Gpu, catalog: Catalog, settings: Settings) -> None:
        self._gpu, self._settings = gpu, settings
        self._direct = direct_queue(gpu.name)  # what was chosen for this very worker comes first
        self._lanes = own_lanes(catalog)
        self.queues: tuple[str, ...] = ()

    def look(
        self, wish: Desired | None, resident: Collection[str], fleet: Callable[[], Iterable[Gpu]]
    ) -> None:
        """Decide anew: as desired; without a wish, the classes of the live fleet that this GPU covers.

        A lane whose weights have left (a job that was chosen for this GPU needed the room) is not served any
        more, before the next rebalance hears of it.
        """
        if wish is not None:
            here = {"", wish.load, *resident}
            self.queues = tuple(queue for queue in wish.queues if lane_of(queue) in here)
            return
        classes = self._settings.gpu_classes or {gpu.gpu_class for gpu in fleet()}
        self.queues = subscribe(
            self._gpu.gpu_class,
            self._gpu.vram_gib,
            classes={*classes, self._gpu.gpu_class},
            lanes=self._lanes,
        )

    def rest(self) -> None:
        """Serve nothing until the next look."""
        self.queues = ()

    def reconcile(self, consumer: Any) -> None:
        """Make the worker's consumers equal to what is wanted. Runs in the worker's event loop."""
        wanted = (self._direct, *self.queues) if self.queues else ()
        serving = {queue.name for queue in consumer.task_consumer.queues}
        SubscriptionOrder.wanted = wanted
        for queue in set(serving).difference(wanted):
            consumer.cancel_task_queue(queue)
        for queue in wanted:
            if queue not in serving:
                consumer.add_task_queue(queue, routing_key=queue)


def own_lanes(catalog: Catalog) -> frozenset[tuple[str, str]]:
    """(class, lane) for every model with its own lane and every class that holds it at its default shape."""
    return frozenset(
        (gpu_class.name, spec.name)
        for spec in catalog
        if spec.lane
        for gpu_class in KNOWN.values()
        if gpu_class.usable_gib >= default_need_gib(spec)
    )


class HasSubscriber(Protocol):
    """Who owns the subscriber by the time the consumer starts."""

    subscriber: Subscriber | None


def subscribe_step(owner: HasSubscriber) -> type[bootsteps.StartStopStep]:
    """The consumer step that reconciles once a second."""

    class SubscribeStep(bootsteps.StartStopStep):
        """Wraps the subscriber for Celery's consumer."""

        requires = ("celery.worker.consumer.tasks:Tasks",)

        def __init__(self, _consumer: Any, **_: Any) -> None:
            self._timer: Any = None

        def start(self, consumer: Any) -> None:
            """After every (re)connection."""
            if owner.subscriber is not None:
                owner.subscriber.reconcile(consumer)
                self._timer = consumer.timer.call_repeatedly(
                    RECONCILE_S, owner.subscriber.reconcile, (consumer,)
                )

        def stop(self, _consumer: Any) -> None:
            """Before every reconnection, and at the end."""
            if self._timer is not None:
                self._timer.cancel()

    return SubscribeStep
