"""The part of the store that knows no jobs: quotas, ticks of the controllers, GPUs and their orders."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

from callsheet.records.gpus import Gpu, GpuOrder
from callsheet.records.lanes import Desired

NO_ROUTES: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class Fleet(Protocol):
    """Inherited by :class:`~callsheet.store.protocol.Store`, whose rules hold here too."""

    # -- controllers

    def set_quotas(
        self, quotas: dict[str, int], *, routes: Mapping[str, tuple[str, ...]] = NO_ROUTES, op: str
    ) -> None:
        """Replace all quotas and routes. Kept until the next call, also without a beat.

        Quotas: how many tickets may be out per queue. Routes: the queues that tickets of a backlog go to, the
        first with room first; a backlog without one has the queue of its own name.
        """
        ...

    def desire(self, changes: Mapping[str, Desired | None], *, op: str) -> None:
        """What these workers are to serve from now on (``at`` is set by the store); None forgets it.

        ``at`` is kept as long as the same weights are asked for: they are on their way since then.
        """
        ...

    def desired(self) -> dict[str, Desired]:
        """What every worker is to serve, by its GPU's name. A wish ends with its GPU."""
        ...

    def desired_of(self, name: str) -> Desired | None:
        """What one worker is to serve; None when no rebalance said so."""
        ...

    def remember(self, name: str, memory: dict[str, Any], *, op: str) -> None:
        """Keep plain data for the next tick of a controller, for a quarter of an hour."""
        ...

    def recall(self, name: str) -> dict[str, Any]:
        """What the last tick kept; empty when there is nothing."""
        ...

    def keep_plan(self, plan: dict[str, Any], *, op: str) -> None:
        """Keep what a tick decided, plain data, for ten minutes; of more than 120 the newest."""
        ...

    def plans(self) -> list[dict[str, Any]]:
        """What the last ticks decided, the oldest first; ``at``: store time of each."""
        ...

    def begin_tick(self, controller: str, number: int, *, token: str, busy_s: float) -> bool:
        """Single flight: True when tick ``number`` is newer than any begun one and no other is under way.

        ``busy_s`` bounds how long a dead holder blocks. Two beats send the same numbers: one wins.
        """
        ...

    def end_tick(self, controller: str, number: int, *, token: str, report: dict[str, Any]) -> bool:
        """Tick done; ``report`` (at, counts, reasons, duration_s) is kept for three minutes.

        True: somebody came while it was under way, so it is to run once more.
        """
        ...

    def last_report(self, controller: str) -> dict[str, Any]:
        """The report of the controller's last tick; empty when none ended within three minutes."""
        ...

    def take_urgent(self) -> None:
        """The controllers look now: a job that comes after this asks for a look of its own."""
        ...

    # -- GPUs

    def beat_gpu(self, gpu: Gpu, *, ttl_s: float) -> None:
        """Register a GPU or renew its heartbeat (``seen_at`` is set by the store)."""
        ...

    def drop_gpu(self, name: str) -> None:
        """A worker left in order."""
        ...

    def gpus(self) -> list[Gpu]:
        """GPUs whose heartbeat is alive, by name."""
        ...

    def order_gpu(self, name: str, order: GpuOrder | None, *, op: str) -> None:
        """An operator's word about one GPU, kept until it is lifted (None). Replaces the one before."""
        ...

    def gpu_order(self, name: str) -> GpuOrder | None:
        """The word about one GPU."""
        ...

    def gpu_orders(self) -> dict[str, GpuOrder]:
        """All of them, by the GPU's name; it need not be alive."""
        ...
