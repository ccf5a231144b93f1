"""The tiny models, built once for a test session and loaded once."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

import torch

from callsheet.records.requests import VideoRequest
from callsheet.workers.frames import Frames
from callsheet.workers.pipelines import LoadedPipeline, load_pipeline
from callsheet.workers.render import render
from callsheet.workers.tiny import build_tiny

torch.set_num_threads(1)  # two threads on a busy machine are fifty times slower at this size

TINY_NAMES = ("tiny-wan", "tiny-ltx")


@functools.cache
def tiny_folder(name: str) -> Path:
    """The folder of a tiny model. Don't change what is in it: copy it first."""
    folder = Path(tempfile.mkdtemp(prefix="callsheet-tiny-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return build_tiny(name, folder)


@functools.cache
def tiny_pipeline(name: str) -> LoadedPipeline:
    """A tiny model, loaded on the CPU."""
    return load_pipeline(str(tiny_folder(name)), dtype="float32", device="cpu")


def tiny_request(
    model: str = "tiny-wan",
    *,
    prompt: str = "a cat walks on the grass",
    negative_prompt: str = "",
    seed: int = 1,
    steps: int = 4,
    frames: int = 5,
    width: int = 64,
    height: int = 32,
    guidance: float = 5.0,
) -> VideoRequest:
    """A small request."""
    return VideoRequest(
        prompt=prompt,
        model=model,
        negative_prompt=negative_prompt,
        width=width,
        height=height,
        frames=frames,
        fps=8,
        steps=steps,
        guidance=guidance,
        seed=seed,
    )


def film_of(request: VideoRequest) -> Frames:
    """Render a request with its tiny model."""
    return render(tiny_pipeline(request.model), request, on_step=lambda *_: None, on_phase=lambda _: None)
