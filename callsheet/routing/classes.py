"""GPU classes: looking them up, and which GPU may serve which class."""

from __future__ import annotations

import math
from collections.abc import Iterable

from callsheet.errors import SettingsError
from callsheet.records.gpus import GPU_CLASSES, Gpu, GpuClass

KNOWN: dict[str, GpuClass] = {known.name: known for known in GPU_CLASSES}


def by_name(name: str) -> GpuClass:
    """The class of that name. Raises SettingsError that lists the known ones."""
    if name not in KNOWN:
        raise SettingsError(
            f"GPU class {name!r} is not known, so no job can be placed on it; known: {', '.join(KNOWN)}"
        )
    return KNOWN[name]


def price_of(gpu_class: str) -> float:
    """Relative price per hour of a class, A100 = 1; also of one that nobody knows."""
    return KNOWN[gpu_class].price if gpu_class in KNOWN else 1.0


def parse_declared(text: str) -> tuple[GpuClass, int]:
    """(class, GiB) of one entry of the setting ``gpus``: ``h100``, or ``h100:40`` for a part of one.

    Raises SettingsError for an unknown class or a memory that is no whole number above zero.
    """
    name, colon, vram = text.partition(":")
    known = by_name(name)
    if not colon:
        return known, known.vram_gib
    if not vram.isdecimal() or int(vram) == 0:
        raise SettingsError(
            f"declared GPU {text!r}: {vram!r} is no memory; write {name}:<whole GiB>, or just {name}"
        )
    return known, int(vram)


def covers(vram_gib: float, gpu_class: str, needed: str) -> bool:
    """Whether a GPU of ``gpu_class`` with ``vram_gib`` may run every job that was placed on ``needed``.

    It may when it has at least the memory that such jobs count on and a generation that can do no less: an
    H100 serves a100, an A100 never h100. Drivers report a little less than the nominal memory, hence the
    comparison in whole usable GiB. An unknown class serves nothing but its own name.
    """
    if needed not in KNOWN or gpu_class not in KNOWN:
        return needed == gpu_class
    enough = vram_gib >= math.floor(KNOWN[needed].usable_gib)
    return enough and KNOWN[gpu_class].features >= KNOWN[needed].features


def smallest_first(names: Iterable[str]) -> list[GpuClass]:
    """Known classes among ``names``, each once, by memory, then price, then name."""
    classes = {name: KNOWN[name] for name in names if name in KNOWN}
    return sorted(classes.values(), key=lambda c: (c.vram_gib, c.price, c.name))


def live_classes(gpus: Iterable[Gpu]) -> frozenset[str]:
    """Classes whose jobs at least one of these GPUs may run, named by a GPU that is there.

    A part of a card (``h100:40``) does not stand for its whole class.
    """
    present = tuple(gpus)
    names = {gpu.gpu_class for gpu in present}
    return frozenset(n for n in names if any(covers(gpu.vram_gib, gpu.gpu_class, n) for gpu in present))
