"""The task that loads a model's weights into a GPU with nothing to do."""

from __future__ import annotations

import logging

from kombu.exceptions import OperationalError

from callsheet.app import app
from callsheet.routing.queues import direct_queue
from callsheet.settings import urls
from callsheet.tasks.ticket import performer

log = logging.getLogger(__name__)


@app.task(name="callsheet.weights", shared=False, ignore_result=True, acks_late=False)
def load_weights(lane: str) -> dict[str, str]:
    """Load a lane's weights, if that is still wanted here. Answers what Flower shows."""
    return {"lane": lane, "done": performer().preload(lane)}


def order_weights(worker: str, lane: str) -> None:
    """Into the direct queue of a worker, by itself. It asks again while it idles without them."""
    queue = direct_queue(worker)
    try:
        load_weights.apply_async(
            args=(lane,), queue=queue, routing_key=queue, declare=[], ignore_result=True, retry=False
        )
    except (OperationalError, OSError) as fault:
        log.warning("weights of %s are not ordered yet (%s)", lane, urls.untrusted(fault) or fault)
