"""The verbs of ``Objects``, in a folder and in memory; S3 is in tests/integration/test_s3.py."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest

from callsheet.artifacts.objects import Objects, open_objects
from callsheet.errors import ObjectNotFound, StorageError

MANY = os.urandom(1024) * 11 * 1024  # 11 MiB: three parts of a multipart upload, three chunks of a download


@pytest.fixture(params=["file", "memory", "memory-prefix"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    if request.param == "file":
        return open_objects((tmp_path / "not made yet" / "films").as_uri())
    return open_objects(f"memory://{uuid.uuid4()}" + ("/a/b" if request.param == "memory-prefix" else ""))


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("data", [b"", b"film", MANY], ids=["empty", "small", "large"])
def test_what_is_put_is_got(objects: Objects, data: bytes) -> None:
    objects.put("jobs/1/film.mp4", data)
    assert objects.get("jobs/1/film.mp4") == data


def test_a_file_is_put_and_got_as_a_file(objects: Objects, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(MANY)
    objects.put("film", source)
    assert objects.get_to("film", target) == target
    assert target.read_bytes() == MANY
    assert not list(tmp_path.glob("*.part"))


def test_put_replaces(objects: Objects) -> None:
    objects.put("a", b"first")
    objects.put("a", b"second")
    assert objects.get("a") == b"second"


def test_exists_and_delete(objects: Objects) -> None:
    assert not objects.exists("jobs/1/film")
    objects.put("jobs/1/film", b"x")
    assert objects.exists("jobs/1/film")
    assert not objects.exists("jobs/1")
    objects.delete("jobs/1/film")
    objects.delete("jobs/1/film")
    assert not objects.exists("jobs/1/film")


def test_list_is_sorted_and_by_whole_parts(objects: Objects) -> None:
    assert objects.list() == []
    for key in ("jobs/2/b", "jobs/1/a", "jobs/10/c", "top"):
        objects.put(key, b"x")
    assert objects.list() == ["jobs/1/a", "jobs/10/c", "jobs/2/b", "top"]
    assert objects.list("jobs") == ["jobs/1/a", "jobs/10/c", "jobs/2/b"]
    assert objects.list("jobs/1") == ["jobs/1/a"]
    assert objects.list("jo") == []


def test_a_missing_object_is_named(objects: Objects, tmp_path: Path) -> None:
    with pytest.raises(ObjectNotFound, match="jobs/1/film"):
        objects.get("jobs/1/film")
    with pytest.raises(ObjectNotFound):
        objects.get_to("jobs/1/film", tmp_path / "target")
    assert not (tmp_path / "target").exists()
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("verb", ["get", "exists", "delete", "list", "url"])
def test_every_verb_refuses_a_key_that_leads_out(objects: Objects, verb: str) -> None:
    with pytest.raises(StorageError, match="no key"):
        getattr(objects, verb)("../film")
    with pytest.raises(StorageError, match="no key"):
        objects.put("../film", b"")


def test_probe_measures_and_leaves_nothing(objects: Objects) -> None:
    found = objects.probe()
    assert found.creates_once
    assert found.seconds >= 0
    assert found.url == objects.url()
    assert objects.list() == []


def test_two_openers_of_one_url_see_the_same_objects(objects: Objects) -> None:
    objects.put("a", b"x")
    assert objects.at(objects.url()).get("a") == b"x"


def test_opening_and_looking_make_no_folder(tmp_path: Path) -> None:
    objects = open_objects((tmp_path / "films").as_uri())
    assert not objects.exists("a")
    assert objects.list() == []
    objects.delete("a")
    assert files_below(tmp_path) == []


def test_a_stored_file_can_be_read_by_others(tmp_path: Path) -> None:
    open_objects(tmp_path.as_uri()).put("a", b"x")
    assert (tmp_path / "a").stat().st_mode & 0o044


def test_a_place_below_a_regular_file_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    objects = open_objects((tmp_path / "file" / "films").as_uri())
    with pytest.raises(StorageError, match=r"file/films.*[Nn]othing half-written.*CALLSHEET_STORAGE_URL"):
        objects.put("jobs/1/film.mp4", b"x")
    with pytest.raises(StorageError):
        objects.probe()
    assert files_below(tmp_path) == ["file"]


def test_a_key_below_an_object_is_not_writable_and_leaves_nothing(tmp_path: Path) -> None:
    objects = open_objects(tmp_path.as_uri())
    objects.put("jobs", b"in the way")
    with pytest.raises(StorageError, match=r"jobs/1/film\.mp4"):
        objects.put("jobs/1/film.mp4", b"x")
    assert files_below(tmp_path) == ["jobs"]


def test_a_missing_source_writes_nothing(objects: Objects, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="nowhere"):
        objects.put("a", tmp_path / "nowhere")
    assert not objects.exists("a")


@pytest.mark.parametrize("target", ["missing/film.mp4", "."])
def test_a_target_that_cannot_be_written_is_named(tmp_path: Path, target: str) -> None:
    objects = open_objects((tmp_path / "films").as_uri())
    objects.put("a", b"x")
    with pytest.raises(StorageError, match="cannot write"):
        objects.get_to("a", tmp_path / target)
    assert files_below(tmp_path) == ["films", "films/a"]


def test_an_earlier_download_survives_a_failed_one(tmp_path: Path) -> None:
    objects = open_objects((tmp_path / "films").as_uri())
    (tmp_path / "film.mp4").write_bytes(b"earlier")
    with pytest.raises(ObjectNotFound):
        objects.get_to("a", tmp_path / "film.mp4")
    assert (tmp_path / "film.mp4").read_bytes() == b"earlier"
