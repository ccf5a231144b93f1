"""From a TOML table to a :class:`ModelSpec`, with every fault of the table named."""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from collections.abc import Mapping
from typing import Any

from callsheet.records.models import ModelSpec
from callsheet.settings.values import convert

DTYPES = ("bfloat16", "float16", "float32")

_NAME = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")  # so that a queue's lane can bear it
_SIZE = re.compile(r"([1-9]\d{0,4})x([1-9]\d{0,4})")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")

#: Keys of one entry with their types; "size" stands for the record's width and height.
KEYS: dict[str, str] = {
    field.name: str(field.type)
    for field in dataclasses.fields(ModelSpec)
    if field.name not in ("name", "width", "height", "sizes")
} | {"size": "str", "sizes": "tuple[str, ...]"}

#: What may be left out, and what stands for it then.
OPTIONAL: dict[str, Any] = {
    "revision": "",
    "lane": False,
    "step_s": 0.0,
    "tiling": False,
    "note": "",
    "sizes": (),
}


class EntryFaults(Exception):
    """All that is wrong with one entry; the loader turns it into a SettingsError with the file's name."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


def read_entry(name: str, table: object) -> ModelSpec:
    """One model. Raises EntryFaults."""
    if not isinstance(table, Mapping):
        raise EntryFaults([f"is not a table; write it as a section [{name!r}] with keys"])
    faults = [] if _NAME.fullmatch(name) else ["its name is not lower-case letters, digits, dots and dashes"]
    faults += [_unknown(key) for key in table if key not in KEYS]
    faults += [f"{key} is missing" for key in KEYS if key not in table and key not in OPTIONAL]
    values = dict(OPTIONAL)
    for key, kind in KEYS.items():
        if key in table:
            faults += _take(key, kind, table[key], values)
    if faults:
        raise EntryFaults(faults)
    spec = _build(name, values)
    if faults := _odds(spec):
        raise EntryFaults(faults)
    return spec


def _take(key: str, kind: str, raw: object, values: dict[str, Any]) -> list[str]:
    """Put one value among ``values``; answers its faults."""
    try:
        value = convert(kind, raw)
    except ValueError as error:
        return [f"{key} = {raw!r} {error}"]
    values[key] = value
    if key in ("size", "sizes"):
        wrong = [size for size in ((value,) if key == "size" else value) if not _SIZE.fullmatch(size)]
        return [f"{key} holds {size!r}; write it as 832x480" for size in wrong]
    if isinstance(value, float) and not (math.isfinite(value) and value >= 0):
        return [f"{key} = {value:g} is no finite number of at least 0"]
    if kind == "int" and value < 1:
        return [f"{key} = {value} is less than 1"]
    return []


def _unknown(key: str) -> str:
    near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.5)
    return f"{key} is not a key of a model" + (f"; did you mean {near[0]}?" if near else "")


def _build(name: str, values: dict[str, Any]) -> ModelSpec:
    width, height = _pixels(values.pop("size"))
    sizes = tuple(_pixels(size) for size in values.pop("sizes")) or ((width, height),)
    return ModelSpec(name=name, width=width, height=height, sizes=sizes, **values)


def _pixels(size: str) -> tuple[int, int]:
    width, height = size.split("x")
    return int(width), int(height)


def _odds(spec: ModelSpec) -> list[str]:
    """What is wrong between the values of an entry whose types are right."""
    stride = spec.frame_stride
    checks = {
        f"dtype = {spec.dtype!r} is none of {', '.join(DTYPES)}": spec.dtype in DTYPES,
        f"source = {spec.source!r} is neither a hub id (org/name) nor an absolute folder": _is_source(
            spec.source
        ),
        f"revision is missing: the hub id {spec.source} needs a branch, tag or commit": is_folder(spec.source)
        or bool(spec.revision),
        "size is not among sizes": (spec.width, spec.height) in spec.sizes,
        "sizes holds an odd number of pixels, which H.264 cannot encode": _all_even(spec.sizes),
        f"frames and max_frames must be a multiple of {stride} plus 1": spec.frames % stride == 1 % stride
        and spec.max_frames % stride == 1 % stride,
        "frames is more than max_frames": spec.frames <= spec.max_frames,
        "fps is more than max_fps": spec.fps <= spec.max_fps,
        "steps is more than max_steps": spec.steps <= spec.max_steps,
        "guidance is more than max_guidance": spec.guidance <= spec.max_guidance,
    }
    return [fault for fault, fine in checks.items() if not fine]


def is_folder(source: str) -> bool:
    """Whether a source is a folder, not a hub id."""
    return source.startswith(("/", "~", "{models_dir}"))


def _is_source(source: str) -> bool:
    return is_folder(source) or bool(_HUB_ID.fullmatch(source))


def _all_even(sizes: tuple[tuple[int, int], ...]) -> bool:
    return all(width % 2 == 0 and height % 2 == 0 for width, height in sizes)
