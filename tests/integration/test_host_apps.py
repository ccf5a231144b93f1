"""What host applications are like: when they are finalized, how many, how configured; and their secrets."""

from __future__ import annotations

import json
import types

import pytest
from celery import Celery, chain, chord, group
from celery.exceptions import ChordError
from celery.result import AsyncResult

from callsheet import VideoJob, generate_video
from callsheet.app import app
from callsheet.cli.job_view import job_document
from callsheet.client import Client
from callsheet.errors import RequestError
from callsheet.tasks.generate import NAME
from tests.support.host_app import QUEUE, make_host
from tests.support.hosting import CAT, PASSWORD, SHOUTED, film, films, held, host_env, task
from tests.support.live import Live, until
from tests.support.processes import run_python

WAIT_S = 60.0


@pytest.fixture
def client(quick: Live) -> Client:
    """Of the deployment that renders nothing."""
    return Client()


# -- the host's app ------------------------------------------------------------------------------------------

IMPORT = "from callsheet import generate_video"
ORDERS = {
    "finalized before": f"from celery import Celery; h = make(); h.finalize(); {IMPORT}",
    "finalized after": f"from celery import Celery; h = make(); {IMPORT}; h.finalize()",
    "imported first": f"{IMPORT}; from celery import Celery; h = make(); h.finalize()",
}


@pytest.mark.parametrize("order", ORDERS)
def test_importing_the_task_is_enough_for_a_host(order: str) -> None:
    code = f"""
        def make(): return Celery("host", broker="memory://")
        {ORDERS[order]}
        ours = h.tasks["{NAME}"]
        from callsheet.app import app
        assert ours.app is app and app.tasks["{NAME}"] is ours
        assert generate_video is ours
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
