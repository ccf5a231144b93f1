"""How long a film of 480p takes to become an mp4, on one core."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.figures import median
from benchmarks.scene import scene
from callsheet.settings import Settings
from callsheet.workers.encode import encode_mp4

FRAMES, WIDTH, HEIGHT, FPS = 81, 832, 480, 16  # Wan2.1's default shape


def measure(folder: Path, *, times: int) -> dict[str, float]:
    """Median seconds of ``times`` encodings with the default quality, and the size of the mp4."""
    film, path, settings = scene(FRAMES, WIDTH, HEIGHT), folder / "film.mp4", Settings(data_dir=folder)
    took = []
    with one_core():
        for _ in range(times):
            began = time.perf_counter()
            encode_mp4(film, FPS, path, crf=settings.encode_crf, preset=settings.encode_preset)
            took.append(time.perf_counter() - began)
    return {"encode_s": median(took), "encode_mb": path.stat().st_size / 1e6}


@contextmanager
def one_core() -> Iterator[None]:
    """Let this process run on one core only, where the system can say so."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
