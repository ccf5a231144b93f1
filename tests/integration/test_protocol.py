"""Rules of the protocol that show on the wire: what tickets carry, where outcomes lie, what revokes leave."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from callsheet import VideoJob, generate_video
from callsheet.app import app
from callsheet.records.jobs import Ticket
from callsheet.store.keys import Keys
from callsheet.tasks.publish import publish
from tests.support.live import Live, until

WAIT_S = 60.0
RESULT = "celery-task-meta-"


@pytest.fixture
def raw(quick: Live) -> Any:
    """The server of a deployment whose workers render nothing, with this process as its client."""
    app.use(quick.settings)
    with quick.valkey.client() as client:
        yield client


def film() -> VideoJob:
    """A job that ended well."""
    job = generate_video.delay("a cat", "tiny-wan")
    assert isinstance(job, VideoJob)
    job.get(timeout=WAIT_S)
    return job


def test_a_ticket_has_an_id_of_its_own_and_carries_no_canvas(raw: Any) -> None:
    assert publish(Ticket("film", 3, "free.nobody"))
    message = json.loads(raw.lpop("free.nobody"))
    args, kwargs, canvas = json.loads(base64.b64decode(message["body"]))
    assert (args, kwargs) == (["film", 3, "free.nobody", 1], {})
    assert not any(canvas.values())
    headers = message["headers"]
    assert (headers["id"], headers["ignore_result"]) == ("film.3", True)
    assert (headers["group"], headers["expires"], headers["eta"]) == (None, None, None)


def test_an_outcome_lies_under_the_job_id_alone(raw: Any) -> None:
    job = film()
    found = [key for key in raw.scan_iter(f"{RESULT}*") if job.id in key]
    assert found == [f"{RESULT}{job.id}"]


def test_a_result_lives_at_least_as_long_as_its_record(raw: Any) -> None:
    """The record's time begins at its end, the result's when it is delivered."""
    job = film()
    until(lambda: not raw.sismember(Keys().undelivered(), job.id), within_s=WAIT_S)
    record_ms = raw.pttl(Keys().job(job.id))
    assert 0 < record_ms <= raw.pttl(f"{RESULT}{job.id}") + 1000  # Celery counts in whole seconds


def test_a_revoke_is_remembered_by_no_worker(raw: Any) -> None:
    """Celery would drop every later message with that id."""
    job = film()
    names = ["quick-0@test", "quick-1@test"]
    app.control.revoke(f"{job.id}.1", terminate=True, signal="SIGUSR1", destination=names)
    app.control.revoke(job.id)
    told = until(
        lambda: app.control.inspect(destination=names, timeout=3.0, limit=2).revoked(),
        within_s=WAIT_S,
        what="an answer of the workers",
    )
    assert not any(told.values()), told
    assert job.get(timeout=WAIT_S)
