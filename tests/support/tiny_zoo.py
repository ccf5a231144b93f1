"""Tiny pipelines of many kinds, with random weights and small latents, for step replay. None is saved."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import diffusers
import torch
from diffusers.pipelines.ltx2.connectors import LTX2TextConnectors

from callsheet.workers.quiet import quiet
from callsheet.workers.tiny import TINY

Arguments = Callable[[Any], dict[str, Any]]

WIDTH, HEIGHT, FRAMES, STEPS = 32, 32, 5, 4


@dataclass(frozen=True)
class Case:
    """One pipeline with one scheduler, and how it is called."""

    pipe: Callable[[], Any]  # cached: built once, loaded with its scheduler afresh by ``build``
    arguments: Callable[[], dict[str, Any]]  # with generators freshly seeded
    scheduler: Callable[[Any], Any] | None = None  # from the pipeline's own, which it replaces

    def build(self) -> Any:
        """The pipeline with its scheduler."""
        pipe = self.pipe()
        if self.scheduler is not None:
            pipe.register_modules(scheduler=self.scheduler(pipe.scheduler))
        return pipe


def seeded(seed: int = 3) -> torch.Generator:
    return torch.Generator("cpu").manual_seed(seed)


def call(**more: Any) -> dict[str, Any]:
    """Arguments that every pipeline of the zoo takes."""
    return {
        "prompt": "a cat",
        "width": WIDTH,
        "height": HEIGHT,
        "num_frames": FRAMES,
        "num_inference_steps": STEPS,
        "guidance_scale": 4.0,
        "generator": seeded(),
        "output_type": "latent",
        **more,
    }


def picture() -> torch.Tensor:
    """A first frame, (1, 3, height, width) in 0 .. 1."""
    return torch.rand(1, 3, HEIGHT, WIDTH, generator=seeded(8))


def _made(make: Callable[[], Any]) -> Any:
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        pipe = make()
    pipe.set_progress_bar_config(disable=True)
    return pipe


@functools.cache
def wan() -> Any:
    return _made(TINY["tiny-wan"])


@functools.cache
def ltx() -> Any:
    return _made(TINY["tiny-ltx"])


@functools.cache
def wan_bf16() -> Any:
    return _made(lambda: TINY["tiny-wan"]().to(torch.bfloat16))


@functools.cache
def wan_two() -> Any:
    """Wan2.2's way: the second denoiser takes over at a boundary."""

    def make() -> Any:
        one, other = TINY["tiny-wan"](), TINY["tiny-wan"]()
        parts = {**one.components, "transformer_2": other.transformer}
        return diffusers.WanPipeline(**parts, boundary_ratio=0.8)

    return _made(make)


@functools.cache
def wan_image() -> Any:
    """Image to video: encodes a picture and draws before the loop; no CLIP, as in Wan2.2."""

    def make() -> Any:
        parts = dict(TINY["tiny-wan"]().components)
        parts["transformer"] = _wan_transformer(in_channels=36)
        parts["transformer_2"] = _wan_transformer(in_channels=36)
        parts |= {"image_encoder": None, "image_processor": None}
        return diffusers.WanImageToVideoPipeline(**parts, boundary_ratio=0.8)

    return _made(make)


@functools.cache
def ltx_image() -> Any:
    return _made(lambda: diffusers.LTXImageToVideoPipeline(**TINY["tiny-ltx"]().components))


@functools.cache
def cogvideo() -> Any:
    def make() -> Any:
        parts = TINY["tiny-ltx"]().components
        vae = diffusers.AutoencoderKLCogVideoX(
            block_out_channels=(8, 8, 8, 8), latent_channels=4, layers_per_block=1, norm_num_groups=2
        )
        transformer = diffusers.CogVideoXTransformer3DModel(
            num_attention_heads=2,
            attention_head_dim=16,
            in_channels=4,
            out_channels=4,
            time_embed_dim=2,
            text_embed_dim=32,
            num_layers=1,
            sample_width=4,
            sample_height=4,
            sample_frames=5,
            max_text_seq_length=16,
        )
        return diffusers.CogVideoXPipeline(
            tokenizer=parts["tokenizer"],
            text_encoder=parts["text_encoder"],
            vae=vae,
            transformer=transformer,
            scheduler=diffusers.CogVideoXDPMScheduler(),
        )

    return _made(make)


@functools.cache
def mochi() -> Any:
    def make() -> Any:
        parts = TINY["tiny-ltx"]().components
        vae = diffusers.AutoencoderKLMochi(
            latent_channels=12,
            encoder_block_out_channels=(32, 32, 32, 32),
            decoder_block_out_channels=(32, 32, 32, 32),
            layers_per_block=(1, 1, 1, 1, 1),
            add_attention_block=(False, False, False, False, False),
        )
        transformer = diffusers.MochiTransformer3DModel(
            num_attention_heads=2,
            attention_head_dim=8,
            num_layers=2,
            pooled_projection_dim=16,
            text_embed_dim=32,
            time_embed_dim=4,
            max_sequence_length=16,
        )
        return diffusers.MochiPipeline(
            tokenizer=parts["tokenizer"],
            text_encoder=parts["text_encoder"],
            vae=vae,
            transformer=transformer,
            scheduler=diffusers.FlowMatchEulerDiscreteScheduler(invert_sigmas=True),
        )

    return _made(make)


@functools.cache
def hunyuan() -> Any:
    """Called with an encoded prompt, since its text encoders are not worth building."""

    def make() -> Any:
        vae = diffusers.AutoencoderKLHunyuanVideo(
            block_out_channels=(8, 8, 8, 8), latent_channels=4, layers_per_block=1, norm_num_groups=2
        )
        transformer = diffusers.HunyuanVideoTransformer3DModel(
            in_channels=4,
            out_channels=4,
            num_attention_heads=2,
            attention_head_dim=10,
            num_layers=1,
            num_single_layers=1,
            num_refiner_layers=1,
            patch_size=1,
            text_embed_dim=16,
            pooled_projection_dim=8,
            rope_axes_dim=(2, 4, 4),
        )
        none = dict.fromkeys(("text_encoder", "tokenizer", "text_encoder_2", "tokenizer_2"))
        return diffusers.HunyuanVideoPipeline(
            vae=vae,
            transformer=transformer,
            scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=7.0),
            **none,
        )

    return _made(make)


@functools.cache
def ltx2() -> Any:
    """Film and sound: steps its own scheduler and a deep copy. Called with an encoded prompt."""

    def make() -> Any:
        vae = diffusers.AutoencoderKLLTX2Video(
            latent_channels=4,
            block_out_channels=(8, 8, 8, 8),
            decoder_block_out_channels=(8, 8, 8),
            layers_per_block=(1, 1, 1, 1, 1),
            decoder_layers_per_block=(1, 1, 1, 1),
        )
        audio_vae = diffusers.AutoencoderKLLTX2Audio(
            base_channels=8, ch_mult=(1,), num_res_blocks=1, resolution=32, latent_channels=2, mel_bins=16
        )
        connectors = LTX2TextConnectors(
            caption_channels=16,
            text_proj_in_factor=1,
            video_connector_num_attention_heads=2,
            video_connector_attention_head_dim=8,
            video_connector_num_layers=1,
            video_connector_num_learnable_registers=None,
            audio_connector_num_attention_heads=2,
            audio_connector_attention_head_dim=8,
            audio_connector_num_layers=1,
            audio_connector_num_learnable_registers=None,
            connector_rope_base_seq_len=32,
        )
        transformer = diffusers.LTX2VideoTransformer3DModel(
            in_channels=4,
            out_channels=4,
            num_attention_heads=2,
            attention_head_dim=8,
            cross_attention_dim=16,
            audio_in_channels=8,
            audio_out_channels=8,
            audio_num_attention_heads=2,
            audio_attention_head_dim=4,
            audio_cross_attention_dim=8,
            num_layers=1,
            caption_channels=16,
        )
        none = dict.fromkeys(("text_encoder", "tokenizer", "vocoder"))
        return diffusers.LTX2Pipeline(
            scheduler=diffusers.FlowMatchEulerDiscreteScheduler(stochastic_sampling=True),
            vae=vae,
            audio_vae=audio_vae,
            connectors=connectors,
            transformer=transformer,
            **none,
        )

    return _made(make)


def ltx2_call() -> dict[str, Any]:
    encoded = {
        f"{sign}prompt_{what}": value
        for at, sign in enumerate(("", "negative_"))
        for what, value in {
            "embeds": torch.rand(1, 6, 16, generator=seeded(at)),
            "attention_mask": torch.ones(1, 6, dtype=torch.int64),
        }.items()
    }
    return call(prompt=None, width=64, height=64, num_frames=9, **encoded)


def hunyuan_call() -> dict[str, Any]:
    return call(
        prompt=None,
        prompt_embeds=torch.rand(1, 6, 16, generator=seeded(1)),
        pooled_prompt_embeds=torch.rand(1, 8, generator=seeded(2)),
        prompt_attention_mask=torch.ones(1, 6, dtype=torch.int64),
    )


def cog_call(**more: Any) -> dict[str, Any]:
    return call(max_sequence_length=16, **more)


def _wan_transformer(**more: Any) -> Any:
    shape = {"patch_size": (1, 2, 2), "num_attention_heads": 2, "attention_head_dim": 12, "text_dim": 32}
    return diffusers.WanTransformer3DModel(
        **shape, ffn_dim=32, num_layers=2, rope_max_seq_len=128, out_channels=16, **more
    )


def _flow(cls: Any, **more: Any) -> Callable[[Any], Any]:
    """A scheduler of flow matching, in the words of the class."""
    words = {"prediction_type": "flow_prediction", "use_flow_sigmas": True, "flow_shift": 3.0}
    return lambda _old: cls(**words, **more)


def _plain(cls: Any, **more: Any) -> Callable[[Any], Any]:
    return lambda _old: cls(**more)


def _euler(**more: Any) -> Callable[[Any], Any]:
    return _plain(diffusers.FlowMatchEulerDiscreteScheduler, **more)


def _of(old: type, **more: Any) -> Callable[[Any], Any]:
    """A scheduler of CogVideoX, whose noise schedule all of them share."""
    words = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012, "steps_offset": 0}
    return lambda _old: old(prediction_type="v_prediction", **words, **more)


_D = diffusers

#: Pipelines by what is special in them: loops, schedulers with and without noise, dtypes, batches.
ZOO: dict[str, Case] = {
    "wan-unipc": Case(wan, call, _flow(_D.UniPCMultistepScheduler)),
    "wan-unipc3": Case(wan, call, _flow(_D.UniPCMultistepScheduler, solver_order=3)),
    "wan-dpm": Case(wan, call, _flow(_D.DPMSolverMultistepScheduler)),
    "wan-sde": Case(wan, call, _flow(_D.DPMSolverMultistepScheduler, algorithm_type="sde-dpmsolver++")),
    "wan-euler": Case(wan, call, _euler(shift=3.0)),
    "wan-stochastic": Case(wan, call, _euler(stochastic_sampling=True)),
    "wan-heun": Case(wan, call, _plain(_D.FlowMatchHeunDiscreteScheduler)),
    "wan-bf16": Case(wan_bf16, call, _flow(_D.UniPCMultistepScheduler)),
    "wan-two": Case(wan_two, call, _flow(_D.UniPCMultistepScheduler)),
    "wan-batch": Case(
        wan,
        lambda: call(prompt=["a", "b", "c"], generator=[seeded(1), seeded(2), seeded(3)]),
        _flow(_D.UniPCMultistepScheduler),
    ),
    "wan-film": Case(wan, lambda: call(output_type="pt"), _flow(_D.UniPCMultistepScheduler)),
    "wan-global": Case(wan, lambda: call(generator=None), _euler(stochastic_sampling=True)),
    "wan-image": Case(wan_image, lambda: call(image=picture()), _flow(_D.UniPCMultistepScheduler)),
    "ltx-euler": Case(ltx, call, _euler()),
    "ltx-stochastic": Case(ltx, call, _euler(stochastic_sampling=True)),
    "ltx-film": Case(ltx, lambda: call(output_type="pt"), _euler()),
    "ltx-image": Case(ltx_image, lambda: call(image=picture()), _euler()),
    "cog-dpm": Case(cogvideo, cog_call, _plain(_D.CogVideoXDPMScheduler)),
    "cog-ddim": Case(cogvideo, cog_call, _plain(_D.CogVideoXDDIMScheduler)),
    "cog-ddim-eta": Case(cogvideo, lambda: cog_call(eta=1.0), _of(_D.DDIMScheduler)),
    "cog-euler-a": Case(cogvideo, cog_call, _of(_D.EulerAncestralDiscreteScheduler)),
    "cog-euler": Case(cogvideo, cog_call, _of(_D.EulerDiscreteScheduler)),
    "cog-pndm": Case(cogvideo, cog_call, _of(_D.PNDMScheduler, skip_prk_steps=True)),
    "cog-pndm-prk": Case(cogvideo, cog_call, _of(_D.PNDMScheduler)),
    "cog-ddpm": Case(cogvideo, cog_call, _plain(_D.DDPMScheduler, prediction_type="v_prediction")),
    "cog-deis": Case(
        cogvideo,
        cog_call,
        _plain(_D.DEISMultistepScheduler, algorithm_type="deis", prediction_type="v_prediction"),
    ),
    "cog-sde": Case(
        cogvideo,
        cog_call,
        _plain(
            _D.DPMSolverMultistepScheduler,
            algorithm_type="sde-dpmsolver++",
            prediction_type="v_prediction",
        ),
    ),
    "cog-heun": Case(cogvideo, cog_call, _of(_D.HeunDiscreteScheduler)),
    "mochi": Case(mochi, lambda: call(num_frames=7, max_sequence_length=16)),
    "hunyuan": Case(hunyuan, hunyuan_call),
    "ltx2": Case(ltx2, ltx2_call),
}
