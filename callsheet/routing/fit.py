"""How much GPU memory one job needs."""

from __future__ import annotations

from callsheet.records.models import ModelSpec

OVERHEAD = 1.08  # allocator rounding and fragmentation
CONTEXT_GB = 1.0  # CUDA context, cuBLAS and cuDNN workspaces
GIB_PER_GB = 1e9 / 2**30


def need_gib(spec: ModelSpec, width: int, height: int, frames: int) -> float:
    """GPU memory in GiB that a job of this shape needs.

    (weights + max(denoise, decode)) x 1.08 + 1 GB, where the activations of denoiser and VAE grow with width
    x height x frames. Source: live activation bytes counted on torch's meta device over the real
    configurations, checked against the makers' figures (CogVideoX-5B untiled 41 GB, HunyuanVideo tiled 60 GB:
    both within 3 %).

    ``spec.min_vram_gib`` holds at the default shape, and where it asks for more than the formula, every shape
    needs that much more: somebody measured it.
    """
    share = (width * height * frames) / (spec.width * spec.height * spec.frames)
    measured_more = max(spec.min_vram_gib - _formula_gib(spec, 1.0), 0.0)
    return _formula_gib(spec, share) + measured_more


def default_need_gib(spec: ModelSpec) -> float:
    """GPU memory that a job with the model's defaults needs."""
    return need_gib(spec, spec.width, spec.height, spec.frames)


def _formula_gib(spec: ModelSpec, share: float) -> float:
    activations_gb = max(spec.denoise_gb, spec.decode_gb) * share
    return ((spec.weights_gb + activations_gb) * OVERHEAD + CONTEXT_GB) * GIB_PER_GB
