"""One tick: a round of controllers, single-flight over all the beats and controller workers.

The number of a tick is the store's clock divided by the round's period. Two beats that send ticks in the same
period, or a hundred ticks that piled up while no controller ran, carry the same number when they are
carried out: one runs and the others are dropped in a millisecond. No clock but the store's is read, so
skewed beats do no harm.

A tick that comes while another controller worker is in the same round is dropped too, but leaves a note, and
that one runs once more: what the late tick was sent for may have come after the first look.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from callsheet.beat import controllers, janitor, pidbox, rebalancer, seats
from callsheet.beat.controllers import Hands
from callsheet.errors import Unreachable
from callsheet.settings import Settings
from callsheet.tasks.publish import REBALANCE

log = logging.getLogger(__name__)

CONTROL = "control"  # the round that moves jobs
JANITOR, JANITOR_S = "janitor", 60.0
AT_ONCE_S = 0.001  # shortest time between two ticks that are asked for


@dataclass(frozen=True, slots=True)
class Round:
    """Controllers that run one after the other."""

    controllers: Sequence[Callable[[Hands], int]]
    busy_s: float  # how long a controller worker that died in it blocks the next one
    numbered_s: float = 0.0  # ticks within so many seconds are one; 0 = the setting tick_s


#: What each kind of tick runs, in order. Delivery talks to hosts' brokers, which may be slow or gone: it has
#: ticks of its own, so that it never holds up release.
ROUNDS: Mapping[str, Round] = {
    CONTROL: Round(
        (
            controllers.wake,
            controllers.reap,
            controllers.heal,
            seats.take_back,
            controllers.reroute,
            seats.match,
            controllers.hasten,
            rebalancer.rebalance_all,
            controllers.release_all,
        ),
        busy_s=5.0,
    ),
    REBALANCE: Round((rebalancer.seat_urgent,), busy_s=5.0, numbered_s=AT_ONCE_S),
    "deliver": Round((controllers.deliver,), busy_s=30.0),
    JANITOR: Round(
        (
            janitor.sweep_records,
            janitor.sweep_erased,
            janitor.sweep_checkpoints,
            pidbox.sweep_pidbox,
        ),
        busy_s=180.0,
        numbered_s=JANITOR_S,
    ),
}


def tick(hands: Hands, name: str, *, clock: Callable[[], float] = time.monotonic) -> dict[str, Any]:
    """Run one tick of a round if it is due. Answers its report; empty when another controller had it."""
    one = ROUNDS[name]
    last, again = _once(hands, name, one, clock)
    while again:
        report, again = _once(hands, name, one, clock)
        last = report or last
    return last


def _once(hands: Hands, name: str, one: Round, clock: Callable[[], float]) -> tuple[dict[str, Any], bool]:
    """(report, whether somebody came meanwhile)."""
    token = uuid.uuid4().hex
    number = _number(hands, one)
    if not hands.store.begin_tick(name, number, token=token, busy_s=one.busy_s):
        return {}, False
    began = clock()
    report: dict[str, Any] = {"number": number, "at": hands.store.now(), "faults": []}
    again = False
    try:
        for controller in one.controllers:
            _run(controller, hands, report)
    finally:
        report["duration_s"] = round(clock() - began, 6)
        again = hands.store.end_tick(name, number, token=token, report=report)
    return report, again and name == REBALANCE


def _number(hands: Hands, one: Round) -> int:
    return int(hands.store.now() / (one.numbered_s or hands.settings.tick_s))


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


def periods(settings: Settings) -> dict[str, float]:
    """How often each round is sent by every beat, seconds."""
    return {name: JANITOR_S if name == JANITOR else settings.tick_s for name in ROUNDS}
