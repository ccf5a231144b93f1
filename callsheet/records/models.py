"""What the catalog says about one model (here a model is a diffusion model)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One entry of the catalog (``models.toml``)."""

    name: str  # wan2.1-t2v-1.3b: lower case, what requests and queue lanes say
    source: str  # hub id (``org/name``) or a folder; ``{models_dir}`` stands for the setting
    revision: str  # hub revision (branch, tag or commit); "" for a folder
    dtype: str  # bfloat16 | float16 | float32: always passed to from_pretrained
    weights_gb: float  # bytes of all weights / 1e9 at that dtype
    denoise_gb: float  # peak activation bytes / 1e9 of one denoiser forward at the default shape
    decode_gb: float  # peak activation bytes / 1e9 of the VAE decode at the default shape
    min_vram_gib: int  # smallest GPU memory it runs on at the default shape
    lane: bool  # True: own lane (too heavy to swap in and out), False: shared
    width: int  # default, pixels
    height: int  # default, pixels
    sizes: tuple[tuple[int, int], ...]  # allowed (width, height)
    frames: int  # default
    max_frames: int  # largest allowed
    frame_stride: int  # frames must be stride * k + 1 (the VAE's temporal compression); 1 = any
    fps: int  # default
    max_fps: int  # largest allowed
    steps: int  # default denoising steps
    max_steps: int  # largest allowed
    guidance: float  # default guidance scale
    max_guidance: float  # largest allowed
    license: str  # SPDX id or name of the weights' licence
    step_s: float = (
        0.0  # seconds of one denoising step at the default shape on the reference GPU (A100); 0 = unknown
    )
    tiling: bool = False  # the VAE decodes in tiles: much less memory, slightly other pixels where tiles meet
    note: str = ""  # one line for ``callsheet models``
