"""The verbs of ``Objects`` against an S3 server, and its faults."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from callsheet.artifacts import stores
from callsheet.artifacts.objects import Objects, open_objects
from callsheet.errors import ObjectNotFound, StorageError
from tests.support.s3 import FakeS3


def opened(endpoint: str, url: str = "s3://films/prod", *, http: bool = True) -> Objects:
    return open_objects(
        url,
        s3_endpoint=endpoint,
        s3_region="eu-west-1",
        s3_access_key_id="key",
        s3_secret_access_key="not-to-be-shown",
        s3_allow_http=http,
    )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little patience, so that a test of an outage is short; the order of magnitude is checked apart."""
    monkeypatch.setitem(stores.CLIENT, "timeout", "1s")
    monkeypatch.setitem(stores.RETRY, "max_retries", 1)


def test_every_verb_under_a_prefix(tmp_path: Path) -> None:
    large = os.urandom(1024) * 11 * 1024
    with FakeS3() as s3:
        objects = opened(s3.endpoint)
        objects.put("jobs/1/film.mp4", large)
        objects.put("jobs/1/film.json", b"{}")
        assert sorted(s3.objects) == ["prod/jobs/1/film.json", "prod/jobs/1/film.mp4"]
        assert objects.url("jobs/1/film.mp4") == "s3://films/prod/jobs/1/film.mp4"
        assert objects.list("jobs") == ["jobs/1/film.json", "jobs/1/film.mp4"]
        assert objects.get_to("jobs/1/film.mp4", tmp_path / "film.mp4").read_bytes() == large
        assert objects.exists("jobs/1/film.json")
        objects.delete("jobs/1/film.json")
        objects.delete("jobs/1/film.json")
        assert not objects.exists("jobs/1/film.json")
        with pytest.raises(ObjectNotFound, match=r"s3://films/prod/jobs/1/film\.json"):
            objects.get("jobs/1/film.json")
        assert not s3.uploads


@pytest.mark.parametrize("honours", [True, False])
def test_probe_tells_whether_create_if_absent_is_honoured(honours: bool) -> None:
    with FakeS3(honours_create=honours) as s3:
        assert opened(s3.endpoint).probe().creates_once is honours
        assert s3.objects == {}


def test_a_server_that_stumbles_is_asked_again() -> None:
    with FakeS3(failures=2) as s3:
        objects = opened(s3.endpoint)
        objects.put("a", b"x")
        assert objects.get("a") == b"x"


@pytest.mark.parametrize(
    ("status", "step"), [(403, "s3_access_key_id"), (404, "Create the bucket"), (500, "s3_endpoint")]
)
def test_a_refusal_names_object_and_next_step_but_no_secret(status: int, step: str, impatient: None) -> None:
    with FakeS3(status=status) as s3, pytest.raises(StorageError) as raised:
        opened(s3.endpoint).put("a", b"x")
    assert "s3://films/prod/a" in str(raised.value)
    assert step in str(raised.value)
    assert "not-to-be-shown" not in str(raised.value)


def test_a_missing_bucket_is_no_missing_object() -> None:
    with FakeS3(status=404) as s3, pytest.raises(StorageError) as raised:
        opened(s3.endpoint).get("a")
    assert not isinstance(raised.value, ObjectNotFound)


def test_nobody_at_the_endpoint(impatient: None) -> None:
    with pytest.raises(StorageError, match="s3_endpoint"):
        opened("http://127.0.0.1:9").put("a", b"x")


def test_a_server_that_never_answers_costs_bounded_time(impatient: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begin = time.monotonic()
        with pytest.raises(StorageError, match="s3_endpoint"):
            opened(f"http://127.0.0.1:{silent.getsockname()[1]}").put("a", b"x")
    assert time.monotonic() - begin < 10


def test_patience_without_the_fixture_is_bounded_too() -> None:
    assert stores.RETRY["max_retries"] <= 5
    assert stores.RETRY["retry_timeout"].total_seconds() <= 60
    assert set(stores.CLIENT) >= {"timeout", "connect_timeout", "read_timeout"}


def test_plain_http_must_be_allowed() -> None:
    with FakeS3() as s3, pytest.raises(StorageError, match="s3_allow_http"):
        opened(s3.endpoint, http=False).put("a", b"x")


def test_the_secret_is_in_no_repr() -> None:
    objects = opened("http://127.0.0.1:9")
    assert "not-to-be-shown" not in f"{objects!r}{vars(objects)!r}"
