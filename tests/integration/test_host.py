"""callsheet inside a host application: two brokers, two backends, one canvas."""

from __future__ import annotations

import json
import threading
import types
import uuid
from typing import Any

import pytest
from celery import Celery, chain, chord, group
from celery.exceptions import ChordError
from celery.result import AsyncResult

from callsheet import VideoJob, generate_video, wiring
from callsheet.app import app
from callsheet.cli.job_view import job_document
from callsheet.client import Client
from callsheet.errors import JobCancelled, RequestError
from callsheet.tasks.generate import NAME
from tests.support.host_app import QUEUE, make_host, notes
from tests.support.hosting import PASSWORD, host_env
from tests.support.live import Live, until
from tests.support.processes import run_python

WAIT_S = 60.0
CAT = {"prompt": "a cat", "model": "tiny-wan", "steps": 2, "seed": 7}
SHOUTED = "tiny-wan 7!"


@pytest.fixture
def client(quick: Live) -> Client:
    """Of the deployment that renders nothing."""
    return Client()


def film(**changes: Any) -> Any:
    return generate_video.s(**{**CAT, **changes})


def films(*seeds: int) -> list[Any]:
    return [film(seed=seed) for seed in seeds]


def held(**changes: Any) -> Any:
    """A film that does not start while it is cancelled."""
    return film(**changes).set(countdown=60)


def task(host: Celery, name: str, *args: Any, **kwargs: Any) -> Any:
    return host.tasks[f"host.{name}"].s(*args, **kwargs)


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


# -- the host's app ------------------------------------------------------------------------------------------

ORDERS = {
    "finalized before": "from celery import Celery; h = make(); h.finalize(); import callsheet",
    "finalized after": "from celery import Celery; h = make(); import callsheet; h.finalize()",
    "imported first": "import callsheet; from celery import Celery; h = make(); h.finalize()",
}


@pytest.mark.parametrize("order", ORDERS)
def test_import_callsheet_is_enough_for_a_host(order: str) -> None:
    code = f"""
        def make(): return Celery("host", broker="memory://")
        {ORDERS[order]}
        ours = h.tasks["{NAME}"]
        from callsheet.app import app
        assert ours.app is app and app.tasks["{NAME}"] is ours
        assert callsheet.generate_video is ours
        print("ours")
    """
    assert run_python(code).strip() == "ours"


def test_two_hosts_in_one_process(plain_host: Celery, client: Client) -> None:
    url = plain_host.conf["broker_url"][:-1] + "1"  # the same server's database 1
    other = make_host(url, name="other", queue="other-work", tasks=False)
    try:
        assert other.conf["broker_url"] != plain_host.conf["broker_url"]
        result = chain(film(), task(plain_host, "shout"))()  # the other one is current now
        echo = other.signature("other.echo")
        waiting = chain(film(), echo)()
        assert result.get(timeout=WAIT_S) == SHOUTED
        assert waiting.parent.get(timeout=WAIT_S)["seed"] == 7
        assert until(lambda: other.backend.client.llen("other-work"), within_s=WAIT_S) == 1
        with pytest.raises(RequestError, match="two Celery apps"):
            generate_video.apply_async(kwargs=CAT, link=[task(plain_host, "shout"), echo])
    finally:
        other.close()


def test_a_host_configured_from_an_object(plain_host: Celery) -> None:
    url = plain_host.conf["broker_url"]
    settings = types.SimpleNamespace(
        CELERY_BROKER_URL=url, CELERY_RESULT_BACKEND=url, CELERY_TASK_DEFAULT_QUEUE=QUEUE
    )
    django = Celery("django")
    try:
        django.config_from_object(settings, namespace="CELERY")
        last = chain(film(), django.signature("host.shout"))()
        assert last.get(timeout=WAIT_S) == SHOUTED
        assert chord(films(1, 2))(django.signature("host.collect")).get(timeout=WAIT_S) == [1, 2]
    finally:
        django.close()


def test_a_host_that_is_eager_does_not_make_us_so(plain_host: Celery, client: Client) -> None:
    eager = make_host("redis://127.0.0.1:1/0", name="eager", tasks=False)
    eager.conf.task_always_eager = True
    try:
        assert isinstance(generate_video.delay(**CAT), VideoJob)
        assert isinstance(chain(film(), generate_video.si(**CAT))(), VideoJob)
        results = group(films(1, 2))().results
        assert [type(result) for result in results] == [VideoJob, VideoJob]
        assert chord(films(3, 4))(generate_video.si(**CAT)).get(timeout=WAIT_S)["seed"] == 7
    finally:
        eager.close()


# -- secrets -------------------------------------------------------------------------------------------------


def test_the_hosts_password_is_nowhere_to_be_read(host: Celery, client: Client, quick: Live) -> None:
    result = chord([*films(1), held()])(task(host, "collect"))
    result.parent.results[1].cancel()
    job = generate_video.apply_async(kwargs=CAT, link=task(host, "note", about="secret"))
    film_of = job.get(timeout=WAIT_S)
    with pytest.raises(ChordError) as caught:
        AsyncResult(result.id, app=host).get(timeout=WAIT_S)
    record = client.get(job.id)
    assert PASSWORD in json.dumps(dict(record.canvas))  # it is needed there
    shown = [
        repr(record),
        repr(job),
        json.dumps(job_document(record)),
        json.dumps(film_of),
        repr(caught.value),
    ]
    shown += [repr(client.events(job.id)), repr(app), repr(host)]
    shown += [quick.log(name).read_text(errors="replace") for name in quick.processes]
    shown += [value.decode() for value in _values(app, b"celery-task-meta-*")]
    shown += [value.decode() for value in _values(host, b"celery-task-meta-*")]
    assert not [text for text in shown if PASSWORD in text]


def _values(one: Celery, pattern: bytes) -> list[bytes]:
    client = one.backend.client
    return [client.get(key) or b"" for key in client.keys(pattern)]


def test_the_variables_of_the_host_are_what_they_are_said_to_be(host: Celery) -> None:
    url = host.conf["broker_url"]
    assert host.conf.broker_url == app.conf.broker_url == host_env(url)["CELERY_BROKER_URL"]  # Celery's rule
    assert app.connection_for_write().as_uri(include_password=True) != url
    assert app.backend.as_uri(include_password=True) != host.backend.as_uri(include_password=True)
