"""How many tickets may be out per queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from callsheet.records.gpus import Gpu


def quotas(gpus: Iterable[Gpu], depth: int) -> dict[str, int]:
    """``depth`` tickets per live worker that subscribes to a queue; queues without a worker are left out.

    A shallow queue binds jobs late: what waits in the backlog can still change its order, class and lane.
    """
    workers = Counter(queue for gpu in gpus for queue in set(gpu.queues))
    return {queue: count * depth for queue, count in workers.items()}
