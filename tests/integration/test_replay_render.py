"""``render`` with checkpoints: the same frames from every step, phases as they happen, refusals told."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
import torch
from diffusers import FirstBlockCacheConfig

from callsheet.errors import JobCancelled
from callsheet.records.requests import VideoRequest
from callsheet.workers.frames import Frames, frames_sha256
from callsheet.workers.render import plain, render
from callsheet.workers.replay import NotReplayable, Snapshot, dump, parse
from tests.support.tiny import TINY_NAMES, film_of, tiny_pipeline, tiny_request

pytestmark = pytest.mark.torch

torch.set_num_threads(1)


def saved(request: VideoRequest, at: int, resume: Snapshot | None = None) -> Snapshot:
    """Stop a run at a step, as a preemption does; answers its checkpoint, by way of its bytes."""
    blobs: list[bytes] = []

    def on_step(done: int, _total: int, take: Callable[[], Snapshot]) -> None:
        if done == at:
            blobs.append(dump(take(), {}))
            raise JobCancelled("make room")

    with pytest.raises(JobCancelled):
        render(tiny_pipeline(request.model), request, on_step=on_step, on_phase=lambda _: None, resume=resume)
    return parse(blobs[0])


def resumed(request: VideoRequest, snapshot: Snapshot, told: list[object] | None = None) -> Frames:
    tell: Callable[[object], None] = (told if told is not None else []).append
    return render(
        tiny_pipeline(request.model),
        request,
        on_step=lambda done, total, _take: tell((done, total)),
        on_phase=tell,
        resume=snapshot,
    )


@pytest.mark.parametrize("name", TINY_NAMES)
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_preempted_film_is_the_film_it_would_have_been(name: str, at: int) -> None:
    request = tiny_request(name)
    told: list[object] = []
    frames = resumed(request, saved(request, at), told)
    assert frames_sha256(frames) == frames_sha256(plain(tiny_pipeline(name), request))
    later = [(step, 4) for step in range(at + 1, 5)]
    assert told == ["encode", "denoise", *later, "decode"]


@pytest.mark.parametrize("name", TINY_NAMES)
def test_preempted_at_every_step_in_turn(name: str) -> None:
    request = tiny_request(name)
    snapshot = None
    for at in (1, 2, 3, 4):
        snapshot = saved(request, at, snapshot)
    assert snapshot is not None
    assert frames_sha256(resumed(request, snapshot)) == frames_sha256(film_of(request))


def test_a_checkpoint_of_more_steps_is_refused_and_the_pipeline_lives_on() -> None:
    request = tiny_request("tiny-ltx")
    snapshot = saved(request, 4)
    with pytest.raises(NotReplayable, match="at step 4, but this run has only 2"):
        resumed(dataclasses.replace(request, steps=2), snapshot)
    film_of(request)


def test_a_checkpoint_of_another_shape_is_refused_and_the_job_not_failed() -> None:
    request = tiny_request("tiny-ltx")
    snapshot = saved(request, 2)
    larger = dataclasses.replace(request, width=128)
    with pytest.raises(NotReplayable, match=r"does not fit this run \(RuntimeError.*step 0"):
        resumed(larger, snapshot)
    film_of(larger)


def test_an_order_to_stop_comes_out_when_the_run_has_caught_up() -> None:
    request = tiny_request("tiny-ltx")
    stop = JobCancelled("make room again")

    def on_phase(phase: str) -> None:
        if phase == "denoise":
            raise stop

    with pytest.raises(JobCancelled) as raised:
        render(
            tiny_pipeline("tiny-ltx"),
            request,
            on_step=lambda *_: None,
            on_phase=on_phase,
            resume=saved(request, 2),
        )
    assert raised.value is stop


def test_a_step_cache_is_refused_and_the_film_still_made() -> None:
    pipe = tiny_pipeline("tiny-wan").pipe
    reasons: list[str] = []

    def on_step(done: int, _total: int, take: Callable[[], Snapshot]) -> None:
        try:
            take()
        except NotReplayable as error:
            reasons.append(str(error))

    pipe.transformer.enable_cache(FirstBlockCacheConfig(threshold=0.1))
    try:
        render(tiny_pipeline("tiny-wan"), tiny_request(), on_step=on_step, on_phase=lambda _: None)
    finally:
        pipe.transformer.disable_cache()
    assert len(reasons) == 4
    assert "a step cache is on in transformer" in reasons[0]
    saved(tiny_request(), 1)


def test_saving_leaves_the_film_as_it_is() -> None:
    request = tiny_request()
    kept: list[bytes] = []
    frames = render(
        tiny_pipeline(request.model),
        request,
        on_step=lambda _done, _total, take: kept.append(dump(take(), {})),
        on_phase=lambda _: None,
    )
    assert len(kept) == 4
    assert frames_sha256(frames) == frames_sha256(plain(tiny_pipeline(request.model), request))
