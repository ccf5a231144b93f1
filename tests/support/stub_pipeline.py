"""A pipeline of a few lines, for what real ones do seldom: run out of memory, return NaN."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from callsheet.workers.pipelines import LoadedPipeline


class StubPipeline:
    """Calls back at every step and returns grey frames, or ``video``.

    ``fault`` is called with ``encode``, ``denoise`` (each step) and ``decode``, and may raise.
    """

    def __init__(
        self, fault: Callable[[str], object] = lambda _: None, video: torch.Tensor | None = None
    ) -> None:
        self.fault = fault
        self.video = video
        self.freed = 0  # calls of maybe_free_model_hooks
        self.num_timesteps = 0
        self.seen: dict[str, Any] = {}  # arguments of the newest call

    def encode_prompt(self, prompt: str) -> torch.Tensor:
        self.fault("encode")
        return torch.zeros(len(prompt))

    def __call__(
        self,
        prompt: str,
        width: int,
        height: int,
        num_frames: int,
        num_inference_steps: int,
        generator: torch.Generator,
        output_type: str,
        callback_on_step_end: Callable[..., dict[str, Any]],
    ) -> Any:
        self.seen = {"prompt": prompt, "generator": generator, "output_type": output_type}
        self.encode_prompt(prompt)
        self.num_timesteps = num_inference_steps
        for index in range(num_inference_steps):
            self.fault("denoise")
            callback_on_step_end(self, index, torch.tensor(index), {"latents": torch.zeros(1)})
        self.fault("decode")
        grey = torch.full((1, num_frames, 3, height, width), 0.5)
        return SimpleNamespace(frames=grey if self.video is None else self.video)

    def maybe_free_model_hooks(self) -> None:
        self.freed += 1


def loaded_stub(pipe: Any) -> LoadedPipeline:
    """As if it had been loaded."""
    return LoadedPipeline(pipe, "stub", "", "", "", "float32", "cpu", 0.0)
