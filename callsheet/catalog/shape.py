"""Size and length of a film: the arguments that can be given in two ways each."""

from __future__ import annotations

import re

from callsheet.catalog.reading import Reader
from callsheet.records.models import ModelSpec

_SIZE = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})")
_MAX_SIDE = 99_999  # pixels; more is no size at all
_MAX_FRAMES = 100_000  # no model makes more; stands for its limit while it is not known


def read_size(reader: Reader, spec: ModelSpec | None) -> tuple[int, int]:
    """(width, height) from ``size``, or from ``width`` and ``height``, or the model's default.

    Answers (0, 0) after a fault, or without a model.
    """
    if not reader.has("size", "width", "height"):
        return (spec.width, spec.height) if spec else (0, 0)
    one = _one_text(reader) if reader.has("size") else None
    two = _two_numbers(reader) if reader.has("width", "height") else None
    if reader.has("size") and reader.has("width", "height"):
        reader.fault("size", "and width, height say the same thing twice; allowed: one of the two")
        return 0, 0
    size = one or two
    if size is None or spec is None:
        return 0, 0
    if size not in spec.sizes:
        name = "size" if one else "width x height"
        allowed = ", ".join(f"{width}x{height}" for width, height in spec.sizes)
        reader.faults.append(f"{name} = {size[0]}x{size[1]} is no size of {spec.name}; allowed: {allowed}")
        return 0, 0
    return size


def _one_text(reader: Reader) -> tuple[int, int] | None:
    text = reader.string("size")
    if text is None:
        return None
    match = _SIZE.fullmatch(text)
    if match is None:
        reader.fault("size", 'is no size; write it as "832x480"')
        return None
    return int(match[1]), int(match[2])


def _two_numbers(reader: Reader) -> tuple[int, int] | None:
    for name, other in (("width", "height"), ("height", "width")):
        if not reader.has(name):
            reader.fault(name, f"is missing: it goes with {other}")
    width = reader.whole("width", 1, _MAX_SIDE, " pixels")
    height = reader.whole("height", 1, _MAX_SIDE, " pixels")
    return None if width is None or height is None else (width, height)


def read_frames(reader: Reader, spec: ModelSpec | None, fps: int | None) -> int:
    """Frames from ``frames``, from ``seconds``, or the model's default; 0 after a fault."""
    if not reader.has("frames", "seconds"):
        return spec.frames if spec else 0
    given = _given_frames(reader, spec) if reader.has("frames") else 0
    timed = _from_seconds(reader, spec, fps) if reader.has("seconds") else 0
    if reader.has("frames") and reader.has("seconds"):
        reader.fault("frames", "and seconds say the same thing twice; allowed: one of the two")
    return given or timed


def _given_frames(reader: Reader, spec: ModelSpec | None) -> int:
    frames = reader.whole("frames", 1, spec.max_frames if spec else _MAX_FRAMES)
    if frames is None or spec is None:
        return 0
    low = frames - (frames - 1) % spec.frame_stride
    if low == frames:
        return frames
    near = " or ".join(str(n) for n in (low, low + spec.frame_stride) if n <= spec.max_frames)
    what = f"does not fit {spec.name}; allowed: a multiple of {spec.frame_stride} plus 1, such as {near}"
    reader.fault("frames", what)
    return 0


def _from_seconds(reader: Reader, spec: ModelSpec | None, fps: int | None) -> int:
    """The allowed number of frames nearest to ``seconds``; one frame is the shortest film."""
    if spec is None or fps is None:
        reader.number("seconds", 0, _MAX_FRAMES, " seconds")
        return 0
    half_frame = 0.5 / fps  # so that a rounded length (10.04 for 241 frames at 24 fps) is not refused
    longest = spec.max_frames / fps
    seconds = reader.number("seconds", half_frame, longest + half_frame, f" seconds at {fps} fps")
    if seconds is None:
        return 0
    strides = round((seconds * fps - 1) / spec.frame_stride)
    return min(1 + spec.frame_stride * max(strides, 0), spec.max_frames)
