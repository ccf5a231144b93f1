"""A host application and real GPU workers: the few paths that lead through a worker's child."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from celery import Celery, chain, chord
from celery.result import AsyncResult

from callsheet import generate_video
from callsheet.client import Client
from callsheet.errors import JobCancelled
from tests.support.hosting import current
from tests.support.live import until

pytestmark = pytest.mark.torch

WAIT_S = 60.0
CAT = {"prompt": "a cat", "model": "tiny-wan", "steps": 2, "seed": 7}


@pytest.fixture
def real_host(running_host: Celery, client: Client) -> Iterator[Celery]:
    with current(running_host):
        yield running_host


def test_the_hosts_task_gets_a_real_film(real_host: Celery) -> None:
    again = generate_video.si(**CAT)
    result = chain(generate_video.s(**CAT), again, real_host.tasks["host.shout"].s())()
    assert result.get(timeout=WAIT_S) == "tiny-wan 7!"


def test_a_chord_of_both_kinds(real_host: Celery) -> None:
    header = [generate_video.s(**CAT), real_host.tasks["host.number"].s(2), generate_video.s(**CAT)]
    assert chord(header)(real_host.tasks["host.collect"].s()).get(timeout=WAIT_S) == [7, 2, 7]


def test_a_running_video_that_is_cancelled_fails_the_chains_end(real_host: Celery, client: Client) -> None:
    long = generate_video.s(**{**CAT, "steps": 50, "size": "128x128"})
    result = chain(long, real_host.tasks["host.shout"].s())()
    until(lambda: client.get(result.parent.id).step >= 1, within_s=WAIT_S)
    result.parent.cancel()
    with pytest.raises(JobCancelled):
        AsyncResult(result.id, app=real_host).get(timeout=WAIT_S)
