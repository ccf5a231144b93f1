"""The verbs of ``Objects`` against an S3 server, and its faults; on a real one by ``make test-s3``."""

from __future__ import annotations

import os
import secrets
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from callsheet.artifacts import stores
from callsheet.artifacts.checkpoints import drop_all, drop_checkpoints, read_checkpoint, save_checkpoint
from callsheet.artifacts.objects import Objects, open_objects
from callsheet.errors import CheckpointDamaged, ObjectNotFound, StorageError
from callsheet.settings import Settings
from callsheet.store.memory import MemoryStore
from tests.support.real_s3 import RealS3
from tests.support.s3 import FakeS3
from tests.support.sweeping import Kit, check_sweeps


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


@pytest.fixture
def real() -> RealS3:
    """A real server, when one is named."""
    server = RealS3.named()
    if server is None:
        pytest.skip("no real S3 server is named; `make test-s3` says how")
    return server


@pytest.fixture
def place(real: RealS3) -> Objects:
    """A prefix of its own on it."""
    return real.opened(f"test-{secrets.token_hex(6)}")


def check_verbs(objects: Objects, folder: Path) -> None:
    """Every verb does what it says; ``jobs/1/film.mp4`` is left."""
    large = os.urandom(1024) * 11 * 1024
    objects.put("jobs/1/film.mp4", large)
    objects.put("jobs/1/film.json", b"{}")
    assert objects.list("jobs") == ["jobs/1/film.json", "jobs/1/film.mp4"]
    assert objects.get_to("jobs/1/film.mp4", folder / "film.mp4").read_bytes() == large
    assert objects.exists("jobs/1/film.json")
    objects.delete("jobs/1/film.json")
    objects.delete("jobs/1/film.json")
    assert not objects.exists("jobs/1/film.json")
    with pytest.raises(ObjectNotFound, match=r"s3://.*/jobs/1/film\.json"):
        objects.get("jobs/1/film.json")


def test_every_verb_under_a_prefix(tmp_path: Path) -> None:
    with FakeS3() as s3:
        objects = opened(s3.endpoint)
        check_verbs(objects, tmp_path)
        assert objects.url("jobs/1/film.mp4") == "s3://films/prod/jobs/1/film.mp4"
        assert sorted(s3.objects) == ["prod/jobs/1/film.mp4"]
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
    silent_s = float(stores.CLIENT["read_timeout"].removesuffix("s"))
    assert silent_s <= 20
    # So a server that says nothing is asked once only, and one that cannot be reached a few times.
    assert stores.RETRY["retry_timeout"].total_seconds() + 5 <= silent_s
    assert float(stores.CLIENT["connect_timeout"].removesuffix("s")) <= 5
    assert set(stores.CLIENT) >= {"timeout", "connect_timeout", "read_timeout"}


def test_a_slow_server_just_works() -> None:
    with FakeS3(delay_s=2) as s3:
        opened(s3.endpoint).put("a", b"x")
        assert len(s3.requests) == 1
        assert s3.objects == {"prod/a": b"x"}


def test_plain_http_must_be_allowed() -> None:
    with FakeS3() as s3, pytest.raises(StorageError, match="s3_allow_http"):
        opened(s3.endpoint, http=False).put("a", b"x")


def test_the_secret_is_in_no_repr() -> None:
    objects = opened("http://127.0.0.1:9")
    assert "not-to-be-shown" not in f"{objects!r}{vars(objects)!r}"


# -- on a real server ----------------------------------------------------------------------------------------


def test_real_every_verb(place: Objects, tmp_path: Path) -> None:
    check_verbs(place, tmp_path)
    (entry,) = place.entries("jobs")
    assert entry.size == 11 * 1024 * 1024
    assert abs(entry.modified - time.time()) < 60
    place.delete(entry.key)


def test_real_probe(place: Objects) -> None:
    assert place.probe().seconds < 10
    assert place.list() == []


def test_real_listing_of_more_than_one_page(place: Objects) -> None:
    keys = [f"checkpoints/job-{number:04d}/1-token" for number in range(1100)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda key: place.put(key, b"x"), keys))
        assert [entry.key for entry in place.entries("checkpoints")] == keys
        list(pool.map(place.delete, keys))
    assert place.list() == []


@pytest.mark.parametrize("size", [1000, 20_000_000], ids=["one-part", "multipart"])
def test_real_checkpoint(place: Objects, size: int) -> None:
    data = os.urandom(size)
    kept = save_checkpoint(place, "job", 1, "token", 3, data, build="b")
    assert read_checkpoint(place, kept) == data
    place.put(kept.key, data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(CheckpointDamaged):
        read_checkpoint(place, kept)
    drop_checkpoints(place, [kept])
    with pytest.raises(ObjectNotFound):
        read_checkpoint(place, kept)
    save_checkpoint(place, "job", 2, "token", 4, b"x", build="b")
    drop_all(place, "job")
    assert place.list() == []


def test_real_janitor(place: Objects) -> None:
    check_sweeps(Kit(MemoryStore(), Settings(), lambda: place))
    for key in place.list():
        place.delete(key)


def test_real_refusals_are_explained(real: RealS3) -> None:
    with pytest.raises(StorageError, match="s3_access_key_id"):
        replace(real, secret_access_key="wrong").opened("p").put("a", b"x")
    with pytest.raises(StorageError, match="Create the bucket"):
        replace(real, bucket="callsheet-no-such-bucket").opened("p").put("a", b"x")
