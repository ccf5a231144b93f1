"""The part of the store that knows no jobs: quotas, ticks of the controllers, GPUs and their orders."""

from __future__ import annotations

from typing import Any, Protocol

from callsheet.records.gpus import Gpu, GpuOrder


class Fleet(Protocol):
    """Inherited by :class:`~callsheet.store.protocol.Store`, whose rules hold here too."""

    # -- controllers

    def set_quotas(self, quotas: dict[str, int], *, op: str) -> None:
        """Replace all quotas.

        How many tickets may be out per queue. Kept until the next call, also without a beat.
        """
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
