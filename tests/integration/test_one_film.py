"""One film, end to end: a real Celery worker, a real diffusers pipeline, an mp4 in storage."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import av
import pytest
from celery import Celery, chain, chord, group
from celery.result import AsyncResult

from callsheet import VideoJob, generate_video
from callsheet.app import app
from callsheet.client import Client
from callsheet.errors import (
    IdempotencyConflict,
    JobCancelled,
    JobFailed,
    JobNotFound,
    Refused,
    RequestError,
    UnsupportedOption,
    WaitTimeout,
)
from callsheet.records.states import State
from tests.support.live import Live, until

pytestmark = pytest.mark.torch

WAIT_S = 60.0
CAT = {"prompt": "a cat walks on the grass", "model": "tiny-wan", "steps": 4, "seed": 7}


def submit(**changes: Any) -> VideoJob:
    job = generate_video.delay(**{**CAT, **changes})
    assert isinstance(job, VideoJob)
    return job


def test_a_film_is_made_seen_and_downloaded(client: Client, tmp_path: Path) -> None:
    job = submit(tier="pro")
    assert job.status in ("pending", "queued", "running")
    result = job.wait(timeout=WAIT_S)
    assert job.get(timeout=WAIT_S) == result
    assert (job.state, job.status, job.progress, job.tier, job.attempts) == (
        "SUCCESS",
        "succeeded",
        1.0,
        "pro",
        1,
    )
    path = job.download(tmp_path / "cat.mp4")
    with av.open(str(path)) as film:
        stream = film.streams.video[0]
        assert (stream.codec_context.name, stream.width, stream.height, stream.frames) == ("h264", 64, 64, 17)


def test_the_manifest_holds_everything_to_make_it_again(client: Client, live: Live) -> None:
    result = submit().get(timeout=WAIT_S)
    manifest = json.loads(Path(result["manifest"].removeprefix("file://")).read_text())
    assert manifest["request"]["prompt"] == CAT["prompt"]
    assert manifest["frames_sha256"] == result["frames_sha256"]
    assert manifest["attempt"]["worker"] in ("a100-0@test", "h100-0@test")
    assert manifest["versions"]["torch"]


@pytest.mark.parametrize("model", ["tiny-wan", "tiny-ltx"])
def test_the_same_seed_gives_the_same_film_and_another_seed_another(client: Client, model: str) -> None:
    jobs = [submit(model=model, seed=seed) for seed in (5, 5, 6)]
    first, again, other = (job.get(timeout=WAIT_S)["frames_sha256"] for job in jobs)
    assert first == again != other


def test_progress_is_seen_on_the_way(client: Client) -> None:
    job = submit(steps=50)
    seen: set[int] = set()
    job.wait_ended(WAIT_S, on_look=lambda record: seen.add(record.step), poll_s=0.01)
    assert len(seen) >= 5, sorted(seen)


def test_the_record_tells_who_when_and_how_long(client: Client) -> None:
    job = submit()
    job.get(timeout=WAIT_S)
    record = client.get(job.id)
    assert record.worker.endswith("@test")
    assert 0 < record.created_at <= record.started_at <= record.ended_at
    assert record.gpu_s_useful > 0
    assert client.events(job.id)[0].kind == "submitted"


def test_plain_celery_finds_the_result_under_the_job_id(client: Client) -> None:
    job = submit()
    assert AsyncResult(job.id, app=app).get(timeout=WAIT_S)["job_id"] == job.id


def test_an_unknown_id_is_not_pending_for_ever(client: Client) -> None:
    job = generate_video.AsyncResult(str(uuid.uuid4()))
    for ask in (job.get, job.wait, job.cancel, lambda: job.state, lambda: job.status, lambda: job.progress):
        with pytest.raises(JobNotFound):
            ask()


def test_wait_gives_up_and_the_job_goes_on(client: Client) -> None:
    job = submit(steps=50)
    with pytest.raises(WaitTimeout):
        job.wait(timeout=0.05)
    assert job.wait(timeout=WAIT_S)


def test_a_group_gives_all_results_in_order(client: Client) -> None:
    seeds = [11, 12, 13]
    results = (
        group(generate_video.s(**{**CAT, "seed": seed}) for seed in seeds).apply_async().get(timeout=WAIT_S)
    )
    assert [result["seed"] for result in results] == seeds


def test_a_chain_goes_on_with_the_next_film(client: Client) -> None:
    last = chain(generate_video.s(**CAT), generate_video.si(**{**CAT, "seed": 99})).apply_async()
    assert isinstance(last, VideoJob)
    assert last.status == "pending"
    assert last.get(timeout=WAIT_S)["seed"] == 99
    assert last.parent.get(timeout=WAIT_S)["seed"] == 7


def test_a_chord_fires_its_body_with_every_film(client: Client) -> None:
    body = generate_video.si(**{**CAT, "seed": 77})
    result = chord([generate_video.s(**{**CAT, "seed": seed}) for seed in (1, 2, 3)])(body)
    assert result.get(timeout=WAIT_S)["seed"] == 77
    seeds = [child.get(timeout=WAIT_S)["seed"] for child in result.parent.results]
    assert seeds == [1, 2, 3]


def test_a_link_that_takes_no_result_is_refused_alone(client: Client) -> None:
    link = generate_video.s(**CAT)  # mutable: it gets the film before it as its prompt
    job = generate_video.apply_async(kwargs=CAT, link=link)
    assert job.get(timeout=WAIT_S)["seed"] == 7


def test_a_broken_chain_fails_at_its_end(client: Client) -> None:
    last = chain(generate_video.s(**CAT), generate_video.s(**CAT)).apply_async()
    with pytest.raises(RequestError, match="given twice"):
        last.get(timeout=WAIT_S)


def test_an_idempotency_key_gives_the_first_job(client: Client) -> None:
    key = uuid.uuid4().hex
    first, again = submit(idempotency_key=key), submit(idempotency_key=key)
    assert first.id == again.id
    with pytest.raises(IdempotencyConflict):
        submit(idempotency_key=key, seed=8)


def test_the_same_key_twice_in_a_group_gives_both_results(client: Client) -> None:
    key = uuid.uuid4().hex
    request = {**CAT, "idempotency_key": key}
    result = group(generate_video.s(**request), generate_video.s(**request)).apply_async()
    first, second = result.get(timeout=WAIT_S)
    assert first == second
    assert len({child.id for child in result.results}) == 2
    assert len({child.job_id for child in result.results}) == 1


def test_the_same_key_twice_in_a_chord_fires_it(client: Client) -> None:
    request = {**CAT, "idempotency_key": uuid.uuid4().hex}
    result = chord([generate_video.s(**request), generate_video.s(**request)])(generate_video.si(**CAT))
    assert result.get(timeout=WAIT_S)["seed"] == 7


def test_a_known_key_whose_job_has_ended_still_gives_a_group_its_result(client: Client) -> None:
    request = {**CAT, "idempotency_key": uuid.uuid4().hex}
    submit(**request).get(timeout=WAIT_S)
    (result,) = group([generate_video.s(**request)]).apply_async().get(timeout=WAIT_S)
    assert result["seed"] == 7


def test_cancel_while_it_waits_or_runs(client: Client) -> None:
    jobs = [submit(steps=50, seed=seed) for seed in range(6)]
    until(lambda: any(job.status == "running" for job in jobs), within_s=WAIT_S)
    for job in jobs:
        job.cancel()
    for job in jobs:
        assert job.status in ("cancelled", "succeeded")
        if job.status == "cancelled":
            with pytest.raises(JobCancelled):
                job.get(timeout=WAIT_S)
            assert job.state == "REVOKED"
    assert sum(job.status == "cancelled" for job in jobs) >= 4
    assert submit().get(timeout=WAIT_S)  # the workers are free again at once


def test_the_worker_leaves_a_cancelled_job_within_a_step(client: Client) -> None:
    job = submit(steps=50, size="128x128")
    until(lambda: client.get(job.id).step >= 2, within_s=WAIT_S)
    worker = client.get(job.id).worker
    job.cancel()
    until(lambda: next(g for g in client.gpus() if g.name == worker).job_id != job.id, within_s=5.0)
    assert client.get(job.id).step < 50


def test_a_task_id_is_the_job_id(client: Client) -> None:
    name = f"film-{uuid.uuid4()}"
    job = generate_video.apply_async(kwargs=CAT, task_id=name)
    assert job.id == name
    assert job.get(timeout=WAIT_S)["job_id"] == name
    assert generate_video.apply_async(kwargs=CAT, task_id=name).id == name  # the same again: the same job
    with pytest.raises(IdempotencyConflict):
        generate_video.apply_async(kwargs={**CAT, "seed": 8}, task_id=name)


def test_an_application_without_callsheet_sends_it_by_name(client: Client, live: Live) -> None:
    other = Celery(
        "other", broker=live.settings.broker_url, backend=live.settings.store_url, set_as_current=False
    )
    sent = other.send_task("callsheet.generate_video", kwargs=CAT, queue="callsheet.control")
    assert sent.get(timeout=WAIT_S)["job_id"] == sent.id
    assert client.get(sent.id).attempt == 1
    wrong = other.send_task("callsheet.generate_video", kwargs={**CAT, "steps": 0}, queue="callsheet.control")
    with pytest.raises(RequestError, match="steps"):
        wrong.get(timeout=WAIT_S)


def test_a_countdown_holds_it_back(client: Client) -> None:
    job = generate_video.apply_async(kwargs=CAT, countdown=1.5)
    assert client.get(job.id).state is State.HELD
    job.get(timeout=WAIT_S)
    record = client.get(job.id)
    assert record.started_at - record.created_at >= 1.5


def test_it_expires_when_it_cannot_start_in_time(client: Client) -> None:
    job = generate_video.apply_async(kwargs=CAT, countdown=30, expires=0.5)
    with pytest.raises(JobFailed, match="deadline"):
        job.get(timeout=WAIT_S)
    assert job.status == "expired"


def test_what_celery_offers_and_a_job_cannot_is_refused_by_name(client: Client) -> None:
    with pytest.raises(UnsupportedOption, match="priority"):
        generate_video.apply_async(kwargs=CAT, priority=9)


def test_ignore_result_is_honoured(client: Client) -> None:
    job = generate_video.apply_async(kwargs=CAT, ignore_result=True)
    assert job.get(timeout=1) is None
    until(lambda: job.status == "succeeded", within_s=WAIT_S)


def test_there_is_no_film_before_the_end(client: Client, tmp_path: Path) -> None:
    job = generate_video.apply_async(kwargs=CAT, countdown=60)
    with pytest.raises(Refused, match="no film yet"):
        job.download(tmp_path / "x.mp4")
    job.cancel()
    with pytest.raises(JobCancelled):
        job.download(tmp_path / "x.mp4")
    assert not list(tmp_path.iterdir())


def test_revoke_is_cancel(client: Client) -> None:
    job = generate_video.apply_async(kwargs=CAT, countdown=60)
    job.revoke()
    assert job.status == "cancelled"


def test_purged_queues_lose_no_job(client: Client, live: Live) -> None:
    jobs = [submit(seed=seed, steps=20) for seed in range(8)]
    for _ in range(3):
        for queue in live.store.published():
            with app.connection_for_write() as connection:
                connection.default_channel.queue_purge(queue)
    for job in jobs:
        assert job.get(timeout=WAIT_S)


@pytest.mark.parametrize(
    "prompt",
    [
        "🎬 a cat 👩‍👩‍👧",
        "قطة تمشي على العشب",
        "two\nlines\tand a tab",
        "z̷̢a̴l̶g̵o̷",
        "quotes \" ' \\ {{}} %s $HOME",
    ],
)
def test_prompts_in_any_script(client: Client, prompt: str) -> None:
    job = submit(prompt=prompt)
    job.get(timeout=WAIT_S)
    assert client.get(job.id).request.prompt == prompt
