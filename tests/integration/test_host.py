"""callsheet inside a host application: two brokers, two backends, one canvas."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import pytest
from celery import Celery, chain, chord, group
from celery.exceptions import ChordError
from celery.result import AsyncResult
from redis.exceptions import ConnectionError as RedisConnectionError

from callsheet import VideoJob, generate_video, wiring
from callsheet.app import app
from callsheet.client import Client
from callsheet.errors import JobCancelled, RequestError, Unreachable, UnsupportedOption
from tests.support.host_app import notes
from tests.support.hosting import CAT, SHOUTED, film, films, held, task
from tests.support.live import Live, until

WAIT_S = 60.0


@pytest.fixture
def client(quick: Live) -> Client:
    """Of the deployment that renders nothing."""
    return Client()


def first(result: Any) -> Any:
    while result.parent is not None:
        result = result.parent
    return result


def noted(host: Celery, about: str) -> list[tuple[str, Any]]:
    """The calls of ``host.note``, once there is one."""
    found: list[tuple[str, Any]] = until(lambda: notes(host, about), within_s=WAIT_S, what=about)
    return found


def keys_of_ours(host: Celery) -> list[bytes]:
    return [key for key in host.backend.client.keys("*") if b"callsheet" in key or b"free." in key]


# -- where things go -----------------------------------------------------------------------------------------


def test_a_job_goes_to_our_broker_though_the_variables_name_the_hosts(host: Celery, client: Client) -> None:
    job = generate_video.delay(**CAT)
    assert isinstance(job, VideoJob)
    assert job.get(timeout=WAIT_S)["seed"] == 7
    assert client.get(job.id).worker
    assert keys_of_ours(host) == []


def test_the_hosts_own_tasks_stay_the_hosts(host: Celery) -> None:
    assert host.tasks["host.number"].delay(5).get(timeout=WAIT_S) == 5


def test_a_client_of_another_thread_reaches_our_broker_too(host: Celery) -> None:
    made: list[Any] = []
    thread = threading.Thread(target=lambda: made.append(chain(film(), task(host, "shout"))()))
    thread.start()
    thread.join(WAIT_S)
    assert made[0].get(timeout=WAIT_S) == SHOUTED


# -- chains --------------------------------------------------------------------------------------------------


def test_the_hosts_task_gets_the_film(host: Celery) -> None:
    last = chain(film(), task(host, "shout"))()
    assert last.get(timeout=WAIT_S) == SHOUTED
    assert last.parent.get(timeout=WAIT_S)["seed"] == 7


@pytest.mark.parametrize("follows", ["a chain", "a chord"])
def test_a_store_that_restarts_is_no_end_of_what_follows_a_video(
    host: Celery, follows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Celery's get() asks the videos before for their errors, again and again."""
    asked: list[str] = []

    def away(task_id: str) -> Any:
        asked.append(task_id)
        raise RedisConnectionError("loading the dataset")

    if follows == "a chain":
        result = (film() | task(host, "shout"))()
    else:
        result = chord(films(1, 2))(task(host, "collect"))
    with monkeypatch.context() as patch:
        patch.setattr(app.backend, "get_task_meta", away)
        result.get(timeout=WAIT_S)
    assert asked


def test_a_store_that_stays_away_is_told(host: Celery, monkeypatch: pytest.MonkeyPatch) -> None:
    video = generate_video.delay(**CAT)
    video.get(timeout=WAIT_S)
    handle = generate_video.AsyncResult(video.id)

    def away(_task_id: str) -> Any:
        raise RedisConnectionError("gone")

    monkeypatch.setattr(app.backend, "get_task_meta", away)
    handle.maybe_throw()
    monkeypatch.setattr("callsheet.tasks.job.AWAY_S", 0.0)
    with pytest.raises(Unreachable):
        handle.maybe_throw()


@pytest.mark.parametrize("count", [1, 2])
def test_a_video_takes_the_place_of_the_hosts_task(host: Celery, count: int) -> None:
    result = task(host, "replaced", count).apply_async()
    assert result.get(timeout=WAIT_S)["seed"] == count - 1
    shouted = (task(host, "replaced", count) | task(host, "shout"))()
    assert shouted.get(timeout=WAIT_S) == f"tiny-wan {count - 1}!"
    both = chord([task(host, "replaced", count), film(seed=5)])(task(host, "collect"))
    assert both.get(timeout=WAIT_S) == [count - 1, 5]
    ours_first = chord([film(seed=5), task(host, "replaced", count)])(task(host, "collect"))
    assert ours_first.get(timeout=WAIT_S) == [5, count - 1]


def test_a_wrong_member_of_a_group_says_which_and_what_is_under_way(host: Celery) -> None:
    with pytest.raises(RequestError, match=r"(?s)member 3 of its group.*the 2 before it") as told:
        group([*films(1, 2), film(prompt="")])()
    assert "prompt" in str(told.value)
    with pytest.raises(UnsupportedOption, match="member 2 of its group"):
        group([*films(1), film().set(priority=9)])()
    with pytest.raises(RequestError) as alone:
        group([film(prompt="")])()
    assert "before it" not in str(alone.value)


def test_the_prompt_comes_from_the_hosts_task(host: Celery, client: Client) -> None:
    job = chain(task(host, "make_prompt"), generate_video.s(model="tiny-wan", steps=2))()
    assert isinstance(job, VideoJob)
    assert job.get(timeout=WAIT_S)["model"] == "tiny-wan"
    assert client.get(job.id).request.prompt == "a dog that the host thought of"
    assert keys_of_ours(host) == []


def test_a_video_between_two_tasks_of_the_host(host: Celery) -> None:
    middle = generate_video.s(model="tiny-wan", steps=2, seed=7)
    assert chain(task(host, "make_prompt"), middle, task(host, "shout"))().get(timeout=WAIT_S) == SHOUTED


def test_the_host_is_remembered_over_several_videos(host: Celery) -> None:
    again = generate_video.si(**CAT)
    assert chain(film(seed=1), again, again.clone(), task(host, "shout"))().get(timeout=WAIT_S) == SHOUTED


def test_queues_by_the_hosts_routes_and_by_a_tasks_own_attribute(host: Celery) -> None:
    assert chain(film(), task(host, "routed"))().get(timeout=WAIT_S) == "host-side"
    assert chain(film(), task(host, "owned"))().get(timeout=WAIT_S) == "host-own"


# -- groups and chords ---------------------------------------------------------------------------------------


def test_the_hosts_body_gets_every_film(host: Celery) -> None:
    result = chord(films(1, 2))(task(host, "collect"))
    assert result.get(timeout=WAIT_S) == [1, 2]


@pytest.mark.parametrize("order", ["ours first", "host first"])
@pytest.mark.parametrize("body", ["host", "ours"])
def test_a_header_of_both(host: Celery, order: str, body: str) -> None:
    header = [film(seed=1), task(host, "number", 2), film(seed=3)]
    header = header if order == "ours first" else [header[1], header[0], header[2]]
    last = task(host, "collect") if body == "host" else generate_video.si(**CAT)
    result = chord(header)(last).get(timeout=WAIT_S)
    if body == "ours":
        assert result["seed"] == 7
    else:
        assert result == ([1, 2, 3] if order == "ours first" else [2, 1, 3])


@pytest.mark.parametrize("led_by", ["ours", "host"])
def test_chains_inside_a_header(host: Celery, led_by: str) -> None:
    ours = chain(film(seed=1), generate_video.si(**{**CAT, "seed": 2}))
    mixed = chain(task(host, "make_prompt"), generate_video.s(model="tiny-wan", steps=2, seed=3))
    header = [film(seed=5), ours, mixed] if led_by == "ours" else [task(host, "number", 5), ours, mixed]
    assert chord(header)(task(host, "collect")).get(timeout=WAIT_S) == [5, 2, 3]


@pytest.mark.parametrize("led_by", ["ours", "host"])
def test_a_group_of_both(host: Celery, led_by: str) -> None:
    members = [film(seed=1), task(host, "number", 2)]
    members = members if led_by == "ours" else members[::-1]
    found = group(members)().join(timeout=WAIT_S)  # Celery's get() looks into the first one's backend only
    assert [part["seed"] if isinstance(part, dict) else part for part in found] == (
        [1, 2] if led_by == "ours" else [2, 1]
    )


def test_a_group_of_videos_after_the_hosts_task(host: Celery) -> None:
    result = chain(task(host, "number", 1), group(generate_video.si(**CAT), generate_video.si(**CAT)))()
    assert [part["seed"] for part in result.get(timeout=WAIT_S)] == [7, 7]


def test_a_group_of_videos_between_a_video_and_the_hosts_task(host: Celery) -> None:
    middle = group(generate_video.si(**{**CAT, "seed": seed}) for seed in (1, 2))
    result = chain(film(), middle, task(host, "collect"))()
    assert [part["seed"] for part in result.parent.get(timeout=WAIT_S)] == [1, 2]  # nobody submitted them yet
    assert result.get(timeout=WAIT_S) == [1, 2]


def test_chords_counted_by_either_side_in_one_worker(host: Celery) -> None:
    for _ in range(3):
        assert chord(films(1, 2))(task(host, "collect")).get(timeout=WAIT_S) == [1, 2]  # by ours
        middle = group(generate_video.si(**{**CAT, "seed": seed}) for seed in (3, 4))
        assert chain(film(), middle, task(host, "collect"))().get(timeout=WAIT_S) == [3, 4]  # by the host's


def test_a_body_of_several_steps(host: Celery) -> None:
    steps = chain(generate_video.si(**CAT), task(host, "shout"))
    assert chord(films(1, 2))(steps).get(timeout=WAIT_S) == SHOUTED
    both = group(generate_video.si(**CAT), generate_video.si(**{**CAT, "seed": 8}))
    assert chord(films(1, 2))(chain(both, task(host, "collect"))).get(timeout=WAIT_S) == [7, 8]


def test_a_body_whose_first_step_is_cancelled_fails_its_last(host: Celery, client: Client) -> None:
    first_step = held(seed=9).set(task_id=f"step-{uuid.uuid4()}", immutable=True)
    result = chord(films(1, 2))(chain(first_step, task(host, "shout")))
    job_id = first_step.options["task_id"]
    until(lambda: wiring.store().get_many([job_id])[0], within_s=WAIT_S, what="the body's first step")
    client.cancel(job_id)
    with pytest.raises(JobCancelled):
        AsyncResult(result.id, app=host).get(timeout=WAIT_S)


def test_a_chord_of_videos_alone_touches_no_key_of_the_host(host: Celery) -> None:
    before = set(host.backend.client.keys("celery-task*"))
    result = chord(films(1, 2))(generate_video.si(**CAT))
    assert result.get(timeout=WAIT_S)["seed"] == 7
    assert set(host.backend.client.keys("celery-task*")) == before


# -- links and failures --------------------------------------------------------------------------------------


def test_links_get_the_film(host: Celery) -> None:
    links = [task(host, "note", about="link a"), task(host, "note", about="link b")]
    job = generate_video.apply_async(kwargs=CAT, link=links)
    job.get(timeout=WAIT_S)
    for about in ("link a", "link b"):
        assert noted(host, about)[0][1] == 7


def test_a_cancelled_video_fires_the_hosts_error_link_and_fails_the_chains_end(host: Celery) -> None:
    last = chain(held(), generate_video.si(**CAT), task(host, "shout"))
    last.link_error(task(host, "note", about="error link"))
    result = last()
    job = first(result)
    job.cancel()
    with pytest.raises(JobCancelled):
        result.get(timeout=WAIT_S)
    with pytest.raises(JobCancelled):
        AsyncResult(result.id, app=host).get(timeout=WAIT_S)  # without its parents
    with pytest.raises(JobCancelled):
        AsyncResult(result.parent.id, app=app).get(timeout=WAIT_S)
    assert job.state == "REVOKED"
    assert noted(host, "error link")[0][1] == job.id


@pytest.mark.parametrize("led_by", ["ours", "host"])
def test_a_cancelled_video_fails_the_hosts_chord(host: Celery, led_by: str) -> None:
    about = f"chord error {led_by}"
    body = task(host, "collect").on_error(task(host, "note", about=about))
    other = film() if led_by == "ours" else task(host, "number", 1)
    result = chord([other, held()])(body)
    result.parent.results[1].cancel()
    with pytest.raises(JobCancelled):
        result.get(timeout=WAIT_S)
    with pytest.raises(ChordError, match="cancelled"):
        AsyncResult(result.id, app=host).get(timeout=WAIT_S)  # without its parents
    assert noted(host, about)[0][1] == result.id


def test_a_task_of_the_host_that_fails_fails_the_video_after_it(host: Celery) -> None:
    job = chain(task(host, "broken"), generate_video.si(**CAT))()
    with pytest.raises(ValueError, match="the host is broken"):
        job.get(timeout=WAIT_S)


@pytest.mark.parametrize("led_by", ["ours", "host"])
def test_a_task_of_the_host_that_fails_inside_a_header_fails_the_chord(host: Celery, led_by: str) -> None:
    other = film() if led_by == "ours" else task(host, "number", 1)
    result = chord([other, chain(task(host, "broken"), generate_video.si(**CAT))])(task(host, "collect"))
    with pytest.raises(ChordError, match="the host is broken"):
        AsyncResult(result.id, app=host).get(timeout=WAIT_S)


def test_a_video_that_is_refused_fails_the_chains_end(host: Celery) -> None:
    refused = generate_video.s(**CAT)  # mutable: the film before it comes as its prompt, too
    result = chain(film(), refused, task(host, "shout"))()
    with pytest.raises(RequestError, match="given twice"):
        AsyncResult(result.id, app=host).get(timeout=WAIT_S)
    with pytest.raises(RequestError, match="given twice"):
        result.parent.get(timeout=WAIT_S)
