"""Real pipelines: same seed, same film; every step is told; a stop leaves the pipeline as it was."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from callsheet._version import __version__
from callsheet.artifacts.films import film_keys, store_film
from callsheet.artifacts.objects import open_objects
from callsheet.errors import JobCancelled, JobFailed
from callsheet.records.requests import VideoRequest
from callsheet.workers.contact_sheet import contact_sheet, read_frames
from callsheet.workers.encode import encode_mp4
from callsheet.workers.frames import frames_sha256
from callsheet.workers.manifest import Attempt, build_manifest
from callsheet.workers.pipelines import load_pipeline
from callsheet.workers.render import render
from tests.support.tiny import TINY_NAMES, film_of, tiny_folder, tiny_pipeline, tiny_request

pytestmark = [pytest.mark.torch, pytest.mark.parametrize("name", TINY_NAMES)]


def digest(request: VideoRequest) -> str:
    return frames_sha256(film_of(request))


def test_the_frames_are_what_was_asked_for(name: str) -> None:
    frames = film_of(tiny_request(name, frames=9, width=96, height=64))
    assert frames.shape == (9, 64, 96, 3)
    assert frames.dtype == np.uint8


def test_the_same_seed_gives_the_same_film_also_from_freshly_loaded_weights(name: str) -> None:
    request = tiny_request(name)
    first = digest(request)
    torch.rand(3)
    assert digest(request) == first
    fresh = load_pipeline(str(tiny_folder(name)), dtype="float32", device="cpu")
    frames = render(fresh, request, on_step=lambda *_: None, on_phase=lambda _: None)
    assert frames_sha256(frames) == first


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 2},
        {"seed": 2**63 - 1},
        {"prompt": "a dog"},
        {"prompt": "كلب 🎬"},
        {"negative_prompt": "blurry"},
        {"steps": 3},
        {"guidance": 2.0},
    ],
    ids=str,
)
def test_everything_that_decides_pixels_changes_the_film(name: str, change: dict[str, object]) -> None:
    request = tiny_request(name)
    assert digest(dataclasses.replace(request, **change)) != digest(request)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "prompt", ["", "\x00\x1b[31m", "x" * 5000, "🎬" * 50], ids=["empty", "control", "long", "emoji"]
)
def test_any_prompt_can_be_rendered(name: str, prompt: str) -> None:
    film_of(tiny_request(name, prompt=prompt, steps=1))


def test_every_step_and_phase_is_told(name: str) -> None:
    told: list[object] = []
    request = tiny_request(name, steps=3)
    render(tiny_pipeline(name), request, on_step=lambda *step: told.append(step[:2]), on_phase=told.append)
    assert told == ["encode", "denoise", (1, 3), (2, 3), (3, 3), "decode"]


@pytest.mark.parametrize("at", [1, 2, 4])
def test_a_stop_at_any_step_leaves_the_pipeline_as_it_was(name: str, at: int) -> None:
    request = tiny_request(name)
    expected = digest(request)

    def stop(done: int, total: int, _take: object) -> None:
        if done == at:
            raise JobCancelled("by the user")

    with pytest.raises(JobCancelled):
        render(
            tiny_pipeline(name), dataclasses.replace(request, seed=9), on_step=stop, on_phase=lambda _: None
        )
    assert digest(request) == expected


def test_a_shape_that_the_model_cannot_make_fails_the_job_and_not_the_worker(name: str) -> None:
    with pytest.raises(JobFailed, match=r"[Nn]o film was stored"):
        film_of(tiny_request(name, frames=6))
    with pytest.raises(JobFailed):
        film_of(tiny_request(name, width=50))
    film_of(tiny_request(name))


def test_from_request_to_stored_film_and_back(name: str, tmp_path: Path) -> None:
    request, pipeline = tiny_request(name, width=96, height=64), tiny_pipeline(name)
    frames = film_of(request)
    mp4 = tmp_path / "film.mp4"
    encoding = encode_mp4(frames, request.fps, mp4)
    attempt = Attempt("job", 1, "h100-0@host", 1.0, 2.0)
    manifest = build_manifest(request, pipeline, encoding, attempt, frames_sha256=frames_sha256(frames))
    objects = open_objects((tmp_path / "storage").as_uri())
    keys = film_keys("job", 1, "0123456789")
    store_film(objects, keys, mp4, manifest)

    stored = json.loads(objects.get(keys.manifest))
    assert stored == manifest
    again = VideoRequest.from_json(stored["request"])
    assert frames_sha256(film_of(again)) == stored["frames_sha256"]
    assert stored["model"]["files_sha256"] == pipeline.files_sha256
    assert stored["scheduler"]["class"] == type(pipeline.pipe.scheduler).__name__
    assert stored["scheduler"]["config"]["num_train_timesteps"] == 1000
    assert stored["versions"]["callsheet"] == __version__
    assert set(stored["versions"]) == {"callsheet", "torch", "diffusers", "transformers", "python"}
    assert stored["attempt"] == dataclasses.asdict(attempt)
    assert stored["device"]["name"]

    decoded = read_frames(objects.get_to(keys.film, tmp_path / "back.mp4"))
    assert decoded.shape == frames.shape
    assert contact_sheet([mp4, frames], ["file", "frames"]).startswith(b"\x89PNG")
