"""How much work a request is: seconds on the reference GPU, before anything of it was measured."""

from __future__ import annotations

from callsheet.records.models import ModelSpec
from callsheet.records.requests import VideoRequest

UNKNOWN_S = 1.0  # of a step whose model says nothing


def work_s(spec: ModelSpec, request: VideoRequest) -> float:
    """Estimated seconds that a job takes on the reference GPU (A100), weights loaded.

    steps x seconds of a step, which grow with width x height x frames. Attention grows faster than that, so
    large shapes take somewhat longer: once the job runs, its own steps count.
    """
    share = (request.width * request.height * request.frames) / (spec.width * spec.height * spec.frames)
    return request.steps * (spec.step_s or UNKNOWN_S) * share
