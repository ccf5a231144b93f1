"""Placement: the GPU class that a job waits for."""

from __future__ import annotations

from collections.abc import Iterable

from callsheet.errors import NoGpuFits
from callsheet.records.gpus import GpuClass
from callsheet.routing.classes import KNOWN, smallest_first


def place(need_gib: float, *, fleet: Iterable[str], allowed: Iterable[str] = ()) -> str:
    """Name of the smallest class that fits: among live GPUs (``fleet``), else among ``allowed`` ones.

    Small jobs keep off big and dear cards; among equal memory the cheaper class wins. ``allowed`` are the
    classes that this deployment may have (none given = every known one), so a job may wait for a GPU that is
    yet to come. Raises NoGpuFits with the memory needed, the known class that would fit, and what to set.
    """
    permitted = frozenset(allowed) or frozenset(KNOWN)
    for candidates in (permitted.intersection(fleet), permitted):
        for gpu_class in smallest_first(candidates):
            if fits(need_gib, gpu_class):
                return gpu_class.name
    raise NoGpuFits(_refusal(need_gib, permitted))


def homes(classes: Iterable[str]) -> list[str]:
    """The classes that :func:`place` may choose in a fleet of these: of equal memory only the cheapest."""
    found: list[GpuClass] = []
    for gpu_class in smallest_first(classes):
        if not found or gpu_class.usable_gib > found[-1].usable_gib:
            found.append(gpu_class)
    return [gpu_class.name for gpu_class in found]


def fits(need_gib: float, gpu_class: GpuClass) -> bool:
    """Whether a job runs on GPUs of that class."""
    return need_gib <= gpu_class.usable_gib


def _refusal(need_gib: float, permitted: Iterable[str]) -> str:
    largest = (
        ", ".join(f"{c.name} ({c.usable_gib:g} GiB usable)" for c in smallest_first(permitted)[-1:]) or "none"
    )
    head = f"the job needs {need_gib:.1f} GiB of GPU memory, the largest class allowed here is {largest}"
    fitting = next((c.name for c in smallest_first(KNOWN) if fits(need_gib, c)), "")
    if fitting:
        return f"{head}; {fitting} would fit: add it to the setting gpu_classes, or ask for less film"
    return f"{head}; no known class fits: ask for fewer frames or pixels"
