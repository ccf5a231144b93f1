"""GPUs for tests of policy."""

from __future__ import annotations

from callsheet.records.gpus import Gpu
from callsheet.routing.classes import KNOWN
from callsheet.routing.subscription import subscribe


def gpu(gpu_class: str, index: int = 0, *, vram_gib: int = 0, queues: tuple[str, ...] | None = None) -> Gpu:
    """A live GPU; by default it has its class's memory and serves what it can."""
    vram = vram_gib or KNOWN[gpu_class].vram_gib
    served = subscribe(gpu_class, vram, classes=KNOWN) if queues is None else queues
    return Gpu(
        f"{gpu_class}-{index}@node", gpu_class, vram, f"declared-{index}", "node", index, queues=served
    )
