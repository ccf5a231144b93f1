"""Storage that is full, used across a fork, or whose writer is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from callsheet.artifacts.films import film_keys, store_film
from callsheet.artifacts.objects import open_objects
from callsheet.errors import StorageError
from tests.support.full_disk import full_disk
from tests.support.processes import run_python


@pytest.mark.parametrize("size", [60_000, 12_000_000], ids=["one-part", "multipart"])
def test_a_full_place_keeps_nothing_of_the_film(tmp_path: Path, size: int) -> None:
    objects = open_objects((tmp_path / "films").as_uri())
    objects.put("earlier", b"x")
    (tmp_path / "film.mp4").write_bytes(b"x" * size)
    with (
        full_disk(50_000),
        pytest.raises(StorageError, match=r"films/jobs/job/1-token/film.*Free space there"),
    ):
        store_film(objects, film_keys("job", 1, "token"), tmp_path / "film.mp4", {})
    assert [path.name for path in (tmp_path / "films").rglob("*")] == ["earlier"]


def test_a_full_disk_keeps_nothing_of_a_download(tmp_path: Path) -> None:
    objects = open_objects("memory://full-disk")
    objects.put("film", b"x" * 60_000)
    with full_disk(50_000), pytest.raises(StorageError, match=r"Free space there, or choose another path"):
        objects.get_to("film", tmp_path / "film.mp4")
    assert list(tmp_path.iterdir()) == []


FORK = """
    import os, sys
    from callsheet.artifacts.objects import open_objects
    from callsheet.errors import StorageError

    url, when = sys.argv[1:]
    objects = open_objects(url)
    if when == "used before":
        objects.put("a", b"parent")
    child = os.fork()
    if child == 0:
        for opened in (objects, open_objects(url)):  # a new one is no way out: the runtime is the process's
            for verb in (opened.probe, lambda: opened.get("a"), lambda: opened.put("b", b""), opened.list):
                try:
                    verb()
                    print("worked")
                except StorageError as error:
                    print(error)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
    objects.put("a", b"parent")
"""


def test_a_child_of_a_process_that_used_storage_is_told_instead_of_hanging(tmp_path: Path) -> None:
    lines = run_python(FORK, tmp_path.as_uri(), "used before", timeout_s=30).splitlines()
    assert len(lines) == 8
    assert all("forked" in line and "only after the fork" in line for line in lines)


def test_a_child_may_use_what_its_parent_only_opened(tmp_path: Path) -> None:
    lines = run_python(FORK, tmp_path.as_uri(), "unused", timeout_s=30).splitlines()
    assert lines[0] == "worked"
    assert lines[2:4] == ["worked", "worked"]


KILLED = """
    import os, signal, sys, threading
    from callsheet.artifacts.objects import open_objects

    def film():
        yield b"x" * 6_000_000
        os.kill(os.getpid(), signal.SIGKILL)

    import obstore
    objects = open_objects(sys.argv[1])
    objects.put("first", b"x")
    print("writing", flush=True)
    obstore.put(objects._store(), "film", film())
"""


def test_a_writer_that_is_killed_leaves_no_object(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="exit -9"):
        run_python(KILLED, tmp_path.as_uri())
    objects = open_objects(tmp_path.as_uri())
    assert objects.list() == ["first"]
    assert not objects.exists("film")
    objects.put("film", b"whole")
    assert objects.get("film") == b"whole"
