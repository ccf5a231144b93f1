"""Tiny but real diffusers pipelines with random weights, for machines without a GPU or a network.

They are saved in diffusers' format and loaded by the same path as the real ones, so the whole stack can be
tried and tested with them. Their films show coloured textures that the prompt and the seed decide.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import diffusers
import torch
import transformers
from safetensors import SafetensorError

from callsheet.errors import ModelError
from callsheet.workers.model_files import check_folder
from callsheet.workers.quiet import quiet

_SEED = 5  # of the random weights; of the first few the one with the most colourful films
_TEXT_DIM = 32  # width of the prompt's encoding


def build_tiny(name: str, folder: Path) -> Path:
    """Build the tiny model ``name`` as ``folder / name`` and answer that path. Takes about a second.

    A complete one is kept, a damaged one is replaced; a half-built one is never seen, and builds at the same
    time do no harm. The same versions give the same weights.
    Raises ModelError (unknown name, folder not writable).
    """
    if name not in TINY:
        raise ModelError(f"{name!r} is no tiny model; nothing was built. There are: {', '.join(TINY)}.")
    target = folder / name
    if _is_complete(target):
        return target
    part = folder / f".{name}.{secrets.token_hex(4)}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _save(TINY[name], part)
        _put_in_place(part, target)
    except (OSError, SafetensorError) as error:  # safetensors has its own error for a full disk
        raise ModelError(
            f"cannot write the model {target}: {error}. Nothing half-built is left. "
            "Let this process's user write there, or set models_dir (CALLSHEET_MODELS_DIR) to another folder."
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def _is_complete(target: Path) -> bool:
    try:
        check_folder(target)
    except ModelError:
        return False
    return True


def _save(make: Callable[[], Any], part: Path) -> None:
    """Build with our own seed and leave the caller's random state alone."""
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        make().save_pretrained(part)
    for path in part.rglob("*.safetensors"):
        path.chmod(0o644)  # safetensors makes them 0600; other users' workers shall read them too


def _put_in_place(part: Path, target: Path) -> None:
    """Rename into place. Whoever comes second finds a complete model there and keeps that."""
    try:
        part.rename(target)
    except OSError:
        if _is_complete(target):
            return
        aside = part.with_suffix(".damaged")
        os.rename(target, aside)  # noqa: PTH104 - a pair of renames, as short as can be
        part.rename(target)
        shutil.rmtree(aside, ignore_errors=True)


def _wan() -> Any:
    vae = diffusers.AutoencoderKLWan(
        base_dim=3, z_dim=16, dim_mult=[1, 1, 1, 1], num_res_blocks=1, temperal_downsample=[False, True, True]
    )
    transformer = diffusers.WanTransformer3DModel(
        patch_size=(1, 2, 2),
        num_attention_heads=2,
        attention_head_dim=12,
        text_dim=_TEXT_DIM,
        ffn_dim=32,
        num_layers=2,
        rope_max_seq_len=128,
    )
    scheduler = diffusers.UniPCMultistepScheduler(
        prediction_type="flow_prediction", use_flow_sigmas=True, num_train_timesteps=1000, flow_shift=3.0
    )
    return diffusers.WanPipeline(
        tokenizer=_tokenizer(),
        text_encoder=_text_encoder(transformers.UMT5EncoderModel, transformers.UMT5Config),
        vae=_with_contrast(vae, 4.0),
        scheduler=scheduler,
        transformer=transformer,
    )


def _ltx() -> Any:
    vae = diffusers.AutoencoderKLLTXVideo(
        latent_channels=8,
        block_out_channels=(8, 8, 8, 8),
        decoder_block_out_channels=(8, 8, 8, 8),
        layers_per_block=(1, 1, 1, 1, 1),
        decoder_layers_per_block=(1, 1, 1, 1, 1),
        spatio_temporal_scaling=(True, True, False, False),
        decoder_spatio_temporal_scaling=(True, True, False, False),
        decoder_inject_noise=(False, False, False, False, False),
        upsample_residual=(False, False, False, False),
        upsample_factor=(1, 1, 1, 1),
        patch_size=2,  # with two halvings: eight pixels a latent, so a step is quick
        patch_size_t=1,
        encoder_causal=True,
        decoder_causal=False,
    )
    transformer = diffusers.LTXVideoTransformer3DModel(
        in_channels=8,
        out_channels=8,
        num_attention_heads=4,
        attention_head_dim=8,
        cross_attention_dim=_TEXT_DIM,
        num_layers=1,
        caption_channels=_TEXT_DIM,
    )
    return diffusers.LTXPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
        vae=vae,
        text_encoder=_text_encoder(transformers.T5EncoderModel, transformers.T5Config),
        tokenizer=_tokenizer(),
        transformer=transformer,
    )


def _tokenizer() -> Any:
    """Bytes as tokens: no vocabulary to train, and every script and emoji has its own encoding."""
    return transformers.ByT5Tokenizer(extra_ids=0)


def _text_encoder(model: Any, config: Any) -> Any:
    shape = {"vocab_size": 384, "d_model": _TEXT_DIM, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    return model(config(**shape, feed_forward_proj="gated-gelu")).eval()


def _with_contrast(vae: Any, factor: float) -> Any:
    """Random weights decode to nearly grey frames; a louder last layer makes them worth looking at."""
    with torch.no_grad():
        vae.decoder.conv_out.weight.mul_(factor)
    return vae


TINY: dict[str, Callable[[], Any]] = {"tiny-wan": _wan, "tiny-ltx": _ltx}
