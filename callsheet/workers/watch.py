"""What a pipeline does now: its phase and its finished steps, told to two callbacks that may stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from callsheet.workers.replay import Snapshot

OnStep = Callable[[int, int, Callable[[], Snapshot]], None]  # (finished steps, of how many, save this one)
OnPhase = Callable[[str], None]  # encode | denoise | decode


class Watch:
    """Watches one run of one pipeline."""

    def __init__(self, on_step: OnStep, on_phase: OnPhase, take: Callable[[], Snapshot]) -> None:
        self._on_step = on_step
        self._on_phase = on_phase
        self._take = take  # saves the step that has just ended
        self.phase = "its run"  # or, once it is watched: encode | denoise | decode
        self.stopped: Exception | None = None  # what a callback raised

    @contextmanager
    def over(self, pipe: Any, *, resumed: bool = False) -> Iterator[None]:
        """Enter ``encode`` now, and ``denoise`` as soon as the pipeline has encoded its prompt.

        A resumed run denoises when it has caught up.
        """
        self._enter("encode")
        encode = None if resumed else getattr(pipe, "encode_prompt", None)

        def encode_prompt(*args: Any, **kwargs: Any) -> Any:
            encoded = encode(*args, **kwargs)  # type: ignore[misc]
            self._enter("denoise")
            return encoded

        if encode is not None:
            pipe.encode_prompt = encode_prompt
        try:
            yield
        finally:
            if encode is not None:
                vars(pipe).pop("encode_prompt", None)

    def step_ended(self, pipe: Any, index: int, _timestep: Any, tensors: dict[str, Any]) -> dict[str, Any]:
        """The pipeline's ``callback_on_step_end``; hands the tensors back as they came."""
        done = index + 1
        total = _total(pipe, done)
        self._enter("denoise")
        self._call(self._on_step, done, total, self._take)
        if done == total:
            self._enter("decode")
        return tensors

    def caught_up(self, pipe: Any, done: int) -> None:
        """A resumed run has replayed the ``done`` steps that it need not compute."""
        self._enter("denoise")
        if done == _total(pipe, done):
            self._enter("decode")

    def _enter(self, phase: str) -> None:
        if phase != self.phase:
            self.phase = phase
            self._call(self._on_phase, phase)

    def _call(self, callback: Callable[..., None], *args: Any) -> None:
        try:
            callback(*args)
        except Exception as error:
            self.stopped = error
            raise


def _total(pipe: Any, done: int) -> int:
    return max(int(getattr(pipe, "num_timesteps", 0) or 0), done)
