"""The thin Celery shell: two plain beats send the tick, any controller worker carries it out."""

from __future__ import annotations

import logging
from typing import Any

from kombu.exceptions import ChannelError

from callsheet import wiring
from callsheet.app import CONTROL_QUEUE, app
from callsheet.beat.controllers import Hands
from callsheet.beat.tick import periods, tick
from callsheet.errors import Unreachable
from callsheet.routing.fleet import live_rules
from callsheet.settings import Settings
from callsheet.tasks.deliver import deliver
from callsheet.tasks.publish import TICK, publish, release
from callsheet.tasks.revoke import signal_yield

log = logging.getLogger(__name__)


def depth(queue: str) -> int:
    """Messages that wait in a Celery queue (0 when it does not exist)."""
    with app.connection_or_acquire() as connection:
        channel = connection.default_channel
        try:
            return int(channel.queue_declare(queue=queue, passive=True).message_count)
        except ChannelError:
            return 0


def broker_client() -> Any:
    """A client on the broker's Redis, in its database; None when the broker is no Redis."""
    with app.connection_or_acquire() as connection:
        return getattr(connection.default_channel, "client", None)


def hands() -> Hands:
    """What this process's controllers act through; the same from tick to tick, since they remember."""
    return wiring.once(
        "hands",
        lambda: Hands(
            wiring.store(),
            wiring.settings(),
            depth=depth,
            release=release,
            deliver=deliver,
            publish=publish,
            signal=signal_yield,
            objects=wiring.objects,
            broker=broker_client,
            fleet=live_rules(wiring.catalog(), wiring.settings()),
        ),
    )


@app.task(name=TICK, ignore_result=True, acks_late=False)
def run_tick(name: str) -> dict[str, Any]:
    """One tick, unless another controller has it. A store that is away is met again by the next one."""
    try:
        return tick(hands(), name)
    except Unreachable as fault:
        log.warning("tick dropped: %s", fault)
        return {}


def schedule(settings: Settings) -> dict[str, Any]:
    """Beat's schedule: one tick of each round per period."""
    options = {"queue": CONTROL_QUEUE, "routing_key": CONTROL_QUEUE, "ignore_result": True}
    return {
        name: {"task": run_tick.name, "schedule": period_s, "args": (name,), "options": options}
        for name, period_s in periods(settings).items()
    }


app.conf.beat_schedule = schedule(wiring.settings())
app.conf.beat_max_loop_interval = 1.0  # a beat that lost its connection looks again soon
