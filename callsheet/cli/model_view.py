"""What the command line shows of models: a documented JSON shape, and tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from callsheet.cli.table import Column, Table
from callsheet.errors import NoGpuFits
from callsheet.records.models import ModelSpec
from callsheet.routing.fit import default_need_gib
from callsheet.routing.placement import place

_LIST = (
    Column("model"),
    Column("size"),
    Column("frames", right=True, spare=2),
    Column("fps", right=True, spare=4),
    Column("steps", right=True, spare=3),
    Column("needs GiB", right=True),
    Column("smallest GPU", spare=1),
    Column("lane", spare=5),
    Column("note", wraps=True, spare=6),
)


def smallest_class(spec: ModelSpec) -> str:
    """Name of the smallest known GPU class for a job with the model's defaults; "" when none fits."""
    try:
        return place(default_need_gib(spec), fleet=())
    except NoGpuFits:
        return ""


def model_document(spec: ModelSpec, source: str) -> dict[str, Any]:
    """One model as JSON. ``source`` is resolved: a hub id or an absolute folder."""
    return {
        "name": spec.name,
        "source": source,
        "revision": spec.revision or None,
        "license": spec.license,
        "note": spec.note or None,
        "dtype": spec.dtype,
        "weights_gb": spec.weights_gb,
        "tiled_decode": spec.tiling,
        "need_gib": round(default_need_gib(spec), 2),
        "smallest_gpu_class": smallest_class(spec) or None,
        "lane": "own" if spec.lane else "shared",
        "sizes": _sizes(spec),
        "defaults": _defaults(spec),
        "limits": _limits(spec),
    }


def _sizes(spec: ModelSpec) -> list[str]:
    return [f"{width}x{height}" for width, height in spec.sizes]


def _defaults(spec: ModelSpec) -> dict[str, Any]:
    return {
        "width_px": spec.width,
        "height_px": spec.height,
        "frames": spec.frames,
        "fps": spec.fps,
        "steps": spec.steps,
        "guidance": spec.guidance,
    }


def _limits(spec: ModelSpec) -> dict[str, Any]:
    return {
        "max_frames": spec.max_frames,
        "frame_stride": spec.frame_stride,
        "max_fps": spec.max_fps,
        "max_steps": spec.max_steps,
        "max_guidance": spec.max_guidance,
    }


def model_list(specs: Sequence[ModelSpec]) -> Table:
    """A line for each model, with its defaults."""
    return Table(_LIST, [_line(spec) for spec in specs], empty="the catalog is empty")


def _line(spec: ModelSpec) -> tuple[str, ...]:
    return (
        spec.name,
        f"{spec.width}x{spec.height}",
        str(spec.frames),
        str(spec.fps),
        str(spec.steps),
        f"{default_need_gib(spec):.1f}",
        smallest_class(spec) or "none",
        "own" if spec.lane else "shared",
        spec.note,
    )


def model_facts(spec: ModelSpec, source: str) -> Table:
    """Everything about one model."""
    facts = {
        "model": spec.name,
        "note": spec.note,
        "source": f"{source} (revision {spec.revision})" if spec.revision else source,
        "licence": spec.license,
        "weights": f"{spec.weights_gb:g} GB as {spec.dtype}",
        "needs": f"{default_need_gib(spec):.1f} GiB of GPU memory with its defaults",
        "smallest GPU": smallest_class(spec) or "none of the known classes is large enough",
        "lane": "its own: too heavy to swap in and out" if spec.lane else "shared with other models",
        "sizes": ", ".join(_sizes(spec)),
        "frames": f"{spec.frames}; up to {spec.max_frames}{_stride(spec)}",
        "fps": f"{spec.fps}; up to {spec.max_fps}",
        "steps": f"{spec.steps}; up to {spec.max_steps}",
        "guidance": f"{spec.guidance:g}; up to {spec.max_guidance:g}",
    }
    columns = (Column("fact"), Column("value", wraps=True))
    return Table(columns, [(name, text) for name, text in facts.items() if text], bare=True)


def _stride(spec: ModelSpec) -> str:
    return f", a multiple of {spec.frame_stride} plus 1" if spec.frame_stride > 1 else ""
