"""Catalogs and specs for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from callsheet.catalog import Catalog, load_catalog
from callsheet.records.models import ModelSpec

NOW = 1_700_000_000.0  # seconds since the epoch, in 2023

TINY_ENTRY: dict[str, Any] = {
    "source": "/models/mine",
    "dtype": "float32",
    "weights_gb": 1.0,
    "denoise_gb": 1.0,
    "decode_gb": 2.0,
    "min_vram_gib": 1,
    "size": "64x64",
    "frames": 17,
    "max_frames": 33,
    "frame_stride": 4,
    "fps": 8,
    "max_fps": 30,
    "steps": 8,
    "max_steps": 50,
    "guidance": 5.0,
    "max_guidance": 20.0,
    "license": "Apache-2.0",
}


def built_in() -> Catalog:
    """The catalog that ships."""
    return load_catalog("", Path("/models"))


def spec(name: str = "wan2.1-t2v-1.3b") -> ModelSpec:
    """One model that ships."""
    return built_in().get(name)
