"""The order in which a worker looks into its queues: kombu's ``queue_order_strategy``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from kombu.utils.scheduling import priority_cycle


class SubscriptionOrder(priority_cycle):
    """The subscription's own order, however the queues were joined; queues that it does not name come last.

    kombu makes one object per channel, so the order is kept on the class: one process has one subscription.
    """

    wanted: ClassVar[tuple[str, ...]] = ()

    def update(self, it: Iterable[str]) -> None:
        """Queues were joined or left."""
        rank = {queue: place for place, queue in enumerate(self.wanted)}
        super().update(sorted(it, key=lambda queue: (rank.get(queue, len(rank)), queue)))
