"""The queues that one GPU's worker serves, in the order in which it looks into them."""

from __future__ import annotations

from collections.abc import Iterable

from callsheet.records.requests import TIERS
from callsheet.routing.classes import covers, smallest_first
from callsheet.routing.queues import QueueName


def subscribe(
    gpu_class: str,
    vram_gib: float,
    *,
    classes: Iterable[str],
    lanes: Iterable[tuple[str, str]] = (),
    tiers: Iterable[str] = TIERS,
) -> tuple[str, ...]:
    """Queue names for a GPU of ``gpu_class`` with ``vram_gib``; the first is served first.

    Every tier of ``tiers`` before the next one; within a tier its own class, then the other classes that it
    covers from large to small, since only large cards can run what waits there. ``lanes`` are (class, lane)
    pairs; a lane stands right before the shared queue of its class, because its jobs find few other servers.
    Empty when the GPU covers none of ``classes``: it is too small for all of them.
    """
    served = _served(gpu_class, vram_gib, classes)
    own_lanes = {name: sorted({lane for of, lane in lanes if of == name}) for name in served}
    return tuple(
        str(QueueName(tier, name, lane))
        for tier in tiers
        for name in served
        for lane in [*own_lanes[name], ""]
    )


def _served(gpu_class: str, vram_gib: float, classes: Iterable[str]) -> list[str]:
    """Classes that the GPU covers: its own first, then from large to small."""
    others = [c.name for c in reversed(smallest_first(classes)) if c.name != gpu_class]
    return [name for name in (gpu_class, *others) if covers(vram_gib, gpu_class, name)]
