"""``film.json``: everything that is needed to make a film again, and to know that it is the same."""

from __future__ import annotations

import dataclasses
import json
import platform
from dataclasses import dataclass
from typing import Any

import diffusers
import torch
import transformers

from callsheet._version import __version__
from callsheet.records.requests import VideoRequest
from callsheet.workers.encode import Encoding
from callsheet.workers.pipelines import LoadedPipeline

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """Which attempt made the film, and when. Times are seconds since the epoch."""

    job_id: str
    number: int
    worker: str
    started_at: float  # claim
    ended_at: float  # frames encoded


def build_manifest(
    request: VideoRequest,
    pipeline: LoadedPipeline,
    encoding: Encoding,
    attempt: Attempt,
    *,
    frames_sha256: str,
) -> dict[str, Any]:
    """A JSON-ready dict. Compare ``frames_sha256``, not the mp4, to tell whether two films are the same."""
    return {
        "format": FORMAT,
        "request": request.to_json(),
        "seed": request.seed,
        "frames_sha256": frames_sha256,
        "model": _model(pipeline),
        "scheduler": _scheduler(pipeline.pipe),
        "encoding": dataclasses.asdict(encoding),
        "device": _device(pipeline.device),
        "versions": _versions(),
        "attempt": dataclasses.asdict(attempt),
    }


def _model(pipeline: LoadedPipeline) -> dict[str, Any]:
    return {
        "source": pipeline.source,
        "revision": pipeline.revision,
        "commit": pipeline.commit,
        "files_sha256": pipeline.files_sha256,
        "dtype": pipeline.dtype,
        "tiling": pipeline.tiling,
        "pipeline": type(pipeline.pipe).__name__,
    }


def _scheduler(pipe: Any) -> dict[str, Any]:
    scheduler = getattr(pipe, "scheduler", None)
    if scheduler is None:
        return {}
    return {"class": type(scheduler).__name__, "config": json.loads(scheduler.to_json_string())}


def _device(device: str) -> dict[str, Any]:
    if device == "cpu":
        return {"name": f"cpu {platform.machine()}", "threads": torch.get_num_threads()}
    return {"name": torch.cuda.get_device_name(), "cuda": str(torch.version.cuda)}


def _versions() -> dict[str, str]:
    return {
        "callsheet": __version__,
        "torch": str(torch.__version__),
        "diffusers": str(diffusers.__version__),
        "transformers": str(transformers.__version__),
        "python": platform.python_version(),
    }
