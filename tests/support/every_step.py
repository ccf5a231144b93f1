"""The proof of step replay: resumed from every step, a run comes out bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from callsheet.workers.replay import Replay, Snapshot, dump, parse
from tests.support.tiny_zoo import Case


def seeded_globally(run: Callable[[], Any]) -> Any:
    """With the same global random state each time, and the caller's left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        return run()


def plain(case: Case, pipe: Any) -> torch.Tensor:
    """What the pipeline gives by itself, (batch, ...)."""
    return _frames(seeded_globally(lambda: pipe(**case.arguments())))


def replayed(
    case: Case,
    pipe: Any,
    resume: Snapshot | None = None,
    *,
    also: Callable[[Replay, int], None] | None = None,
) -> torch.Tensor:
    """The same through Replay; ``also(replay, finished steps)`` is called as each step ends."""
    replay = Replay(pipe, case.arguments(), resume)

    def step_ended(_pipe: Any, index: int, _timestep: Any, tensors: dict[str, Any]) -> dict[str, Any]:
        if also is not None:
            also(replay, index + 1)
        return tensors

    return _frames(seeded_globally(lambda: replay.run(step_ended)))


def snapshots(case: Case, pipe: Any, resume: Snapshot | None = None) -> tuple[torch.Tensor, list[bytes]]:
    """The film, and each of the computed steps as it is stored."""
    blobs: list[bytes] = []
    frames = replayed(case, pipe, resume, also=lambda replay, _: blobs.append(dump(replay.snapshot(), {})))
    return frames, blobs


def check_every_step(case: Case) -> int:
    """Resume from every step; and from each step of a resumed run again. Answers the number of steps."""
    pipe = case.build()
    film = plain(case, pipe)
    same, blobs = snapshots(case, pipe)
    assert torch.equal(same, film), "watching changed the film"
    for at, blob in enumerate(blobs, start=1):
        resumed, later = snapshots(case, pipe, parse(blob))
        assert torch.equal(resumed, film), f"not the same film, resumed at step {at} of {len(blobs)}"
        assert len(later) == len(blobs) - at, "a replayed step was told, or a computed one was not"
        if later:
            assert torch.equal(replayed(case, pipe, parse(later[0])), film), f"chained at {at}, {at + 1}"
    return len(blobs)


def _frames(output: Any) -> torch.Tensor:
    frames: torch.Tensor = output.frames
    return frames
