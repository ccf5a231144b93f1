"""A denoising loop of a few lines with a real scheduler and a real module, to be made odd in one place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from diffusers import FlowMatchEulerDiscreteScheduler

SIZE = 6


class LoopPipeline:
    """Works as diffusers' pipelines do. ``iteration`` and ``prepare`` are there to be overridden."""

    def __init__(self, scheduler: Any = None, denoiser: torch.nn.Module | None = None) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(5)
            self.components: dict[str, Any] = {
                "text_encoder": torch.nn.Linear(SIZE, SIZE),
                "brain": denoiser or torch.nn.Linear(SIZE, SIZE),  # a name that nobody could guess
            }
        self.components["scheduler"] = scheduler or FlowMatchEulerDiscreteScheduler(stochastic_sampling=True)
        self.encoded = 0  # times that the prompt was encoded
        self.num_timesteps = 0

    @property
    def scheduler(self) -> Any:
        return self.components["scheduler"]

    @property
    def brain(self) -> Any:
        return self.components["brain"]

    def encode_prompt(self, prompt: str) -> Any:
        self.encoded += 1
        return self.components["text_encoder"](torch.full((SIZE,), float(len(prompt))))

    @contextmanager
    def progress_bar(self, total: int) -> Iterator[None]:
        yield

    def draw(self, generator: torch.Generator | None) -> Any:
        """The first latents."""
        return torch.randn(SIZE, generator=generator)

    def prepare(self, steps: int) -> torch.Tensor:
        """Timesteps."""
        self.scheduler.set_timesteps(steps)
        timesteps: torch.Tensor = self.scheduler.timesteps
        return timesteps

    def iteration(self, index: int, timestep: Any, latents: Any, prompt: Any) -> Any:
        predicted = self.brain(latents + prompt)
        return self.scheduler.step(predicted, timestep, latents, return_dict=False)[0]

    @torch.no_grad()
    def __call__(
        self,
        prompt: str,
        steps: int,
        generator: torch.Generator | None = None,
        callback_on_step_end: Any = None,
    ) -> Any:
        encoded = self.encode_prompt(prompt)
        latents = self.draw(generator)
        self.loop(self.prepare(steps), latents, encoded, callback_on_step_end)
        return SimpleNamespace(frames=self.latents)

    def loop(self, timesteps: torch.Tensor, latents: Any, encoded: Any, callback: Any) -> None:
        self.num_timesteps = len(timesteps)
        with self.progress_bar(total=len(timesteps)):
            for index, timestep in enumerate(timesteps):
                latents = self.iteration(index, timestep, latents, encoded)
                self.call_back(callback, index, timestep, latents)
        self.latents = latents

    def call_back(self, callback: Any, index: int, timestep: Any, latents: Any) -> None:
        if callback is not None:
            callback(self, index, timestep, {"latents": latents})
