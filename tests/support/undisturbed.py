"""What a job's film is when nothing disturbs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from callsheet.catalog import load_catalog
from callsheet.catalog.validate import build_request
from callsheet.workers.frames import frames_sha256
from callsheet.workers.pipelines import LoadedPipeline, load_pipeline
from callsheet.workers.render import render

torch.set_num_threads(1)
_loaded: dict[str, LoadedPipeline] = {}


def frames_hash(arguments: dict[str, Any], models: Path) -> str:
    """Hash of the frames of these arguments of ``generate_video``, rendered in this process."""
    catalog = load_catalog("", models)
    kept = {name: value for name, value in arguments.items() if name not in ("tier", "tenant")}
    request = build_request(kept, catalog, now=0.0, draw_seed=lambda: 0, max_prompt_chars=4000).request
    if request.model not in _loaded:
        spec = catalog.get(request.model)
        _loaded[request.model] = load_pipeline(str(catalog.resolve_source(spec)), dtype=spec.dtype)
    frames = render(_loaded[request.model], request, on_step=lambda *_: None, on_phase=lambda _: None)
    return frames_sha256(frames)
