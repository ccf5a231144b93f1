"""One tick: a round of controllers, single-flight over all the beats and controller workers.

The number of a tick is the store's clock divided by the period. Two beats that send ticks in the same
period, or a hundred ticks that piled up while no controller ran, carry the same number when they are
carried out: one runs and the others are dropped in a millisecond. No clock but the store's is read, so
skewed beats do no harm.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from callsheet.beat import controllers
from callsheet.beat.controllers import Hands
from callsheet.errors import Unreachable

log = logging.getLogger(__name__)

BUSY_S = 30.0  # how long a controller that died in a tick blocks the next one

CONTROL = "control"  # the round that moves jobs

#: What each kind of tick runs, in order. Delivery talks to hosts' brokers, which may be slow or gone: it has
#: ticks of its own, so that it never holds up release.
ROUNDS: Mapping[str, Sequence[Callable[[Hands], int]]] = {
    CONTROL: (
        controllers.wake,
        controllers.reap,
        controllers.heal,
        controllers.reroute,
        controllers.release,
    ),
    "deliver": (controllers.deliver,),
}


def tick(hands: Hands, name: str, *, clock: Callable[[], float] = time.monotonic) -> dict[str, Any]:
    """Run one tick of a round if it is due. Answers its report; empty when another controller had it."""
    token = uuid.uuid4().hex
    number = int(hands.store.now() / hands.settings.tick_s)
    if not hands.store.begin_tick(name, number, token=token, busy_s=BUSY_S):
        return {}
    began = clock()
    report: dict[str, Any] = {"number": number, "faults": []}
    try:
        for controller in ROUNDS[name]:
            _run(controller, hands, report)
    finally:
        report["duration_s"] = round(clock() - began, 6)
        hands.store.end_tick(name, number, token=token, report=report)
    return report


def _run(controller: Callable[[Hands], int], hands: Hands, report: dict[str, Any]) -> None:
    """One controller; its fault is logged and kept in the report, and the next one still runs."""
    name = controller.__name__
    try:
        report[name] = controller(hands)
    except Unreachable:
        raise
    except Exception as fault:
        log.exception("controller %s failed", name)
        report["faults"].append(f"{name}: {fault!r}")
