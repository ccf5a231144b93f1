"""Checkpoints as objects: keys, wholeness, deleting."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from callsheet.artifacts.checkpoints import (
    drop_all,
    drop_checkpoints,
    folder,
    read_checkpoint,
    save_checkpoint,
)
from callsheet.artifacts.films import film_keys
from callsheet.artifacts.objects import Objects, open_objects
from callsheet.errors import CheckpointDamaged, ObjectNotFound, StorageError
from callsheet.records.jobs import Checkpoint
from tests.support.faulty_objects import FaultyObjects

TOKEN = "0123456789abcdef"


@pytest.fixture
def objects() -> FaultyObjects:
    return FaultyObjects()


def saved(objects: Objects, step: int = 7, data: bytes = b"latents", *, attempt: int = 2) -> Checkpoint:
    return save_checkpoint(objects, "job-1", attempt, TOKEN, step, data, build="b")


def test_the_record_says_where_it_lies_and_what_it_is(objects: FaultyObjects) -> None:
    checkpoint = saved(objects)
    assert checkpoint == Checkpoint(
        step=7,
        key="checkpoints/job-1/2-01234567/00007.safetensors",
        sha256=hashlib.sha256(b"latents").hexdigest(),
        size=7,
        build="b",
    )
    assert read_checkpoint(objects, checkpoint) == b"latents"


def test_a_job_id_that_can_be_no_key_lies_under_the_name_of_its_films(objects: FaultyObjects) -> None:
    checkpoint = save_checkpoint(objects, "shop/order 7", 1, TOKEN, 1, b"x", build="")
    name = film_keys("shop/order 7", 1, TOKEN).film.split("/")[1]
    assert folder("shop/order 7") == f"checkpoints/{name}"
    assert checkpoint.key.startswith(f"checkpoints/{name}/1-")


@pytest.mark.parametrize("fault", [FaultyObjects.corrupt, FaultyObjects.truncate])
def test_a_damaged_one_is_told_from_a_whole_one(objects: FaultyObjects, fault: object) -> None:
    checkpoint = saved(objects)
    assert callable(fault)
    fault(objects, checkpoint.key)
    with pytest.raises(CheckpointDamaged, match=r"00007\.safetensors is not what was written"):
        read_checkpoint(objects, checkpoint)


def test_another_size_in_the_record_is_damage_too(objects: FaultyObjects) -> None:
    with pytest.raises(CheckpointDamaged, match="7 bytes of 8"):
        read_checkpoint(objects, replace(saved(objects), size=8))


def test_a_missing_one_and_a_storage_that_refuses_are_told_apart(objects: FaultyObjects) -> None:
    checkpoint = saved(objects)
    objects.refuses = {"read"}
    with pytest.raises(StorageError, match="refused") as raised:
        read_checkpoint(objects, checkpoint)
    assert not isinstance(raised.value, ObjectNotFound | CheckpointDamaged)
    objects.refuses = ()
    drop_checkpoints(objects, [checkpoint])
    with pytest.raises(ObjectNotFound):
        read_checkpoint(objects, checkpoint)


def test_a_full_storage_keeps_the_one_before(objects: FaultyObjects) -> None:
    before = saved(objects, 1, b"x" * 10)
    objects.capacity = 15
    with pytest.raises(StorageError, match="no space"):
        saved(objects, 2, b"x" * 10)
    assert list(objects.held) == [before.key]
    assert read_checkpoint(objects, before) == b"x" * 10


def test_dropping_goes_on_after_one_that_cannot_be_deleted(objects: FaultyObjects) -> None:
    stays, goes = saved(objects, 1), saved(objects, 2)
    objects.stubborn = {stays.key}
    drop_checkpoints(objects, [stays, goes])
    assert list(objects.held) == [stays.key]


def test_drop_all_takes_every_attempt_of_one_job_only(objects: FaultyObjects) -> None:
    saved(objects, 1), saved(objects, 2, attempt=3)
    other = save_checkpoint(objects, "job-11", 1, TOKEN, 1, b"x", build="")
    drop_all(objects, "job-1")
    assert list(objects.held) == [other.key]
    objects.refuses = {"list"}
    with pytest.raises(StorageError):
        drop_all(objects, "job-11")


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_the_same_in_real_places(scheme: str, tmp_path: Path) -> None:
    objects = open_objects(tmp_path.as_uri() if scheme == "file" else f"memory://{tmp_path.name}")
    first, second = saved(objects, 1), saved(objects, 2, attempt=3)
    assert read_checkpoint(objects, first) == b"latents"
    entry = next(objects.entries(folder("job-1") + "/3-01234567"))
    assert (entry.key, entry.size) == (second.key, 7)
    assert entry.modified > 1_700_000_000
    drop_checkpoints(objects, [second])
    assert objects.list("checkpoints") == [first.key]
    drop_all(objects, "job-1")
    assert objects.list() == []
