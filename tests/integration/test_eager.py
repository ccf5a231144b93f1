"""Eager mode with real pipelines: the whole of a job in this process, and no server anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import pytest
from celery import chain, chord, group

from callsheet import generate_video
from callsheet.app import app
from callsheet.errors import JobFailed
from callsheet.records.states import State
from callsheet.settings import Settings
from callsheet.tasks.eager import EagerVideoJob

pytestmark = pytest.mark.torch

CAT = {"prompt": "a cat", "model": "tiny-wan", "steps": 2, "seed": 7}


@pytest.fixture(autouse=True)
def eager(tmp_path: Path, tiny_models: Path) -> Iterator[Settings]:
    settings = Settings(
        data_dir=tmp_path,
        models_dir=tiny_models,
        broker_url="redis://127.0.0.1:1/0",  # nobody listens there
        task_always_eager=True,
        torch_threads=1,
    )
    app.use(settings)
    yield settings
    app.use(Settings(data_dir=tmp_path))


def film(**changes: Any) -> Any:
    return generate_video.s(**{**CAT, **changes})


def test_a_job_runs_here_and_now(tmp_path: Path) -> None:
    job = generate_video.delay(**CAT, tier="pro")
    assert isinstance(job, EagerVideoJob)
    assert (job.state, job.status, job.progress, job.tier, job.attempts) == (
        "SUCCESS",
        "succeeded",
        1.0,
        "pro",
        1,
    )
    assert job.gpu_class
    assert job.get()["seed"] == job.wait(progress=True)["seed"] == 7
    assert job.cancel() is State.SUCCEEDED
    with av.open(str(job.download(tmp_path / "cat.mp4"))) as stored:
        assert stored.streams.video[0].frames == 17


def test_every_way_to_call_gives_the_same_film() -> None:
    hashes = {
        generate_video.delay(**CAT).get()["frames_sha256"],
        generate_video.apply_async(("a cat", "tiny-wan"), {"steps": 2, "seed": 7}).get()["frames_sha256"],
        generate_video.apply(kwargs=CAT).get()["frames_sha256"],
        generate_video(**CAT)["frames_sha256"],
        film()()["frames_sha256"],
        film().delay().get()["frames_sha256"],
    }
    assert len(hashes) == 1


def test_options_that_make_sense_are_honoured() -> None:
    job = generate_video.apply_async(kwargs=CAT, task_id="eager-named", countdown=60, expires=90)
    assert (job.id, job.status) == ("eager-named", "succeeded")  # at once, as Celery's eager mode does
    again = generate_video.apply_async(kwargs=CAT, task_id="eager-named")
    assert again.get() == job.get()
    assert again.attempts == 1


def test_an_idempotency_key_gives_the_first_film() -> None:
    request = {**CAT, "idempotency_key": "eager-key"}
    first, again = generate_video.delay(**request), generate_video.delay(**request)
    assert first.get() == again.get()
    assert first.job_id == again.job_id
    assert again.attempts == 1


def test_groups_chains_and_chords() -> None:
    assert [one["seed"] for one in group(film(seed=seed) for seed in (1, 2))().get()] == [1, 2]
    last = chain(film(seed=1), generate_video.si(**{**CAT, "seed": 2}))()
    assert isinstance(last, EagerVideoJob)
    assert (last.get()["seed"], last.parent.get()["seed"]) == (2, 1)
    body = chord([film(seed=1), film(seed=2)])(generate_video.si(**CAT))
    assert body.get()["seed"] == 7


def test_links_are_followed() -> None:
    link = generate_video.si(**CAT).set(task_id="eager-linked")
    generate_video.apply_async(kwargs={**CAT, "seed": 1}, link=link)
    from callsheet.tasks.eager import eager_store

    assert eager_store().get("eager-linked").state is State.SUCCEEDED


def test_a_failure_is_told_by_get(eager: Settings, tmp_path: Path) -> None:
    app.use(eager.replace(models_dir=tmp_path / "empty"))
    job = generate_video.delay(**CAT)
    assert (job.state, job.status, job.attempts) == ("FAILURE", "failed", 1)
    for ask in (job.get, job.wait, lambda: job.download(tmp_path)):
        with pytest.raises(JobFailed, match="ModelError"):
            ask()
    assert isinstance(job.get(propagate=False), JobFailed)
    with pytest.raises(JobFailed):
        generate_video(**CAT)
    with pytest.raises(JobFailed):
        chain(film(), generate_video.si(**CAT))().get()


def test_a_failure_fires_its_error_link(eager: Settings, tmp_path: Path) -> None:
    from callsheet.tasks.eager import eager_store

    app.use(eager.replace(models_dir=tmp_path / "empty"))
    errback = generate_video.si(**CAT).set(task_id="eager-errback")
    generate_video.apply_async(kwargs=CAT, link_error=errback)
    assert eager_store().get("eager-errback").state is State.FAILED  # tried, with the same missing model
