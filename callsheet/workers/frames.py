"""Frames: a film as raw pixels, a uint8 array of shape (frames, height, width, 3), RGB."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray

from callsheet.errors import JobFailed
from callsheet.records.requests import VideoRequest

Frames = NDArray[np.uint8]


def frames_sha256(frames: Frames) -> str:
    """Hash of shape and pixels. Films are compared by it: mp4 bytes differ between encoder versions."""
    digest = hashlib.sha256("x".join(map(str, frames.shape)).encode())
    digest.update(np.ascontiguousarray(frames).data)
    return digest.hexdigest()


def to_frames(video: torch.Tensor, request: VideoRequest) -> Frames:
    """One video of a pipeline, (frames, 3, height, width) in 0 .. 1 on any device, to frames.

    Raises JobFailed when it is not what the request asked for, or holds numbers that are no pixels.
    """
    wanted, got = (request.frames, 3, request.height, request.width), tuple(video.shape)
    if got != wanted:
        raise JobFailed(
            f"{request.model} returned frames x channels x height x width = {_by(got)} where the job asked "
            f"for {_by(wanted)}; no film was stored. Ask for a shape that the model can make, and correct "
            "its frame_stride, sizes and max_frames in the catalog."
        )
    if not torch.isfinite(video).all():
        raise JobFailed(
            f"{request.model} computed pixels that are not numbers (NaN or infinite); no film was stored. "
            "Try another seed or less guidance; if all seeds fail, set another dtype in the catalog."
        )
    pixels = video.float().mul(255).round().clamp(0, 255).to(torch.uint8)
    return pixels.permute(0, 2, 3, 1).contiguous().cpu().numpy()


def _by(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
