"""Frames to an H.264 mp4 that every browser plays."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from callsheet.artifacts.atomic import whole_file
from callsheet.workers.frames import Frames

_BT709 = 1  # the code of ITU-R BT.709 for primaries, transfer and matrix alike (H.273)
_LIMITED = 1  # FFmpeg's AVCOL_RANGE_MPEG: luma 16 .. 235


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a film was encoded, for its manifest."""

    fps: int
    width: int  # of the mp4, pixels
    height: int  # of the mp4, pixels
    crf: int
    preset: str
    padded_right: int  # columns repeated from the edge, since H.264 in 4:2:0 has even sizes
    padded_bottom: int  # rows repeated from the edge
    codec: str = "libx264"
    pixel_format: str = "yuv420p"
    colorspace: str = "bt709"


def encode_mp4(frames: Frames, fps: int, path: Path, *, crf: int = 18, preset: str = "veryfast") -> Encoding:
    """Write frames to ``path``, which appears only when it is whole. Uses one thread.

    ``crf`` is 0 (lossless) .. 51 (worst). An odd width or height is padded to even by repeating the last
    column or row. Raises StorageError (the path cannot be written), ValueError (no such frames).
    """
    _check(frames)
    height, width = frames.shape[1:3]
    right, bottom = width % 2, height % 2
    encoding = Encoding(fps, width + right, height + bottom, crf, preset, right, bottom)
    with whole_file(path) as part:
        _write(frames, encoding, part)
    return encoding


def _check(frames: Frames) -> None:
    if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[3] != 3 or 0 in frames.shape:
        raise ValueError(f"frames must be uint8 (n, height, width, 3), not {frames.dtype} {frames.shape}")


def _write(frames: Frames, encoding: Encoding, part: Path) -> None:
    # faststart: players can begin before they have the whole file; the format is named, as ".part" tells none
    with av.open(str(part), "w", format="mp4", options={"movflags": "+faststart"}) as container:
        stream = _open_stream(container, encoding)
        for frame in frames:
            container.mux(stream.encode(_picture(frame, encoding)))
        container.mux(stream.encode())


def _open_stream(container: Any, encoding: Encoding) -> Any:
    stream = container.add_stream(encoding.codec, rate=Fraction(encoding.fps))
    stream.width, stream.height, stream.pix_fmt = encoding.width, encoding.height, encoding.pixel_format
    stream.options = {"crf": str(encoding.crf), "preset": encoding.preset}
    codec = stream.codec_context
    codec.thread_count = 1  # a GPU node's other cores belong to its other workers
    codec.color_primaries = codec.color_trc = codec.colorspace = _BT709
    codec.color_range = _LIMITED
    return stream


def _picture(frame: Frames, encoding: Encoding) -> Any:
    if encoding.padded_right or encoding.padded_bottom:
        frame = np.pad(frame, ((0, encoding.padded_bottom), (0, encoding.padded_right), (0, 0)), mode="edge")
    picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
    ranges = {"src_color_range": "JPEG", "dst_color_range": "MPEG"}
    return picture.reformat(format=encoding.pixel_format, dst_colorspace="ITU709", threads=1, **ranges)
