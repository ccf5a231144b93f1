"""Keys of films, the order in which their objects are written, and getting one back by its URL."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from callsheet.artifacts.films import FilmKeys, drop_films, fetch_film, film_keys, store_film
from callsheet.artifacts.objects import Objects, open_objects
from callsheet.errors import ObjectNotFound, StorageError

KEYS = film_keys("job-1", 2, "0123456789abcdef")


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return open_objects((tmp_path / "storage").as_uri())


@pytest.fixture
def mp4(tmp_path: Path) -> Path:
    path = tmp_path / "made.mp4"
    path.write_bytes(b"film")
    return path


def test_keys_carry_job_attempt_and_fence() -> None:
    keys = film_keys("job-1", 2, "0123456789abcdef")
    assert keys == FilmKeys("jobs/job-1/2-01234567/film.mp4", "jobs/job-1/2-01234567/film.json")


@pytest.mark.parametrize("job_id", ["../../etc", "a/b", "", ".", "مرحبا", "a" * 500, "a b"])
def test_an_odd_job_id_still_has_keys_of_its_own(job_id: str) -> None:
    keys = film_keys(job_id, 1, "0123456789abcdef")
    assert keys.film.startswith("jobs/id-")
    assert keys.film.count("/") == 3
    assert keys != film_keys(job_id + "x", 1, "0123456789abcdef")
    open_objects("memory://odd").put(keys.film, b"x")


def test_store_film_writes_both_and_answers_their_urls(objects: Objects, mp4: Path) -> None:
    film, manifest = store_film(objects, KEYS, mp4, {"prompt": "مرحبا", "seed": 1})
    assert (film, manifest) == (objects.url(KEYS.film), objects.url(KEYS.manifest))
    assert objects.get(KEYS.film) == b"film"
    assert json.loads(objects.get(KEYS.manifest)) == {"prompt": "مرحبا", "seed": 1}


def test_without_its_film_there_is_no_manifest(objects: Objects, tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        store_film(objects, KEYS, tmp_path / "missing.mp4", {})
    assert objects.list() == []


def test_a_manifest_that_is_no_json_stores_no_film(objects: Objects, mp4: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        store_film(objects, KEYS, mp4, {"guidance": float("nan")})
    assert objects.list() == []


def test_a_film_is_fetched_by_its_url_from_any_place(objects: Objects, mp4: Path, tmp_path: Path) -> None:
    url, _ = store_film(objects, KEYS, mp4, {})
    elsewhere = open_objects("memory://another")
    into_file = fetch_film(elsewhere, url, tmp_path / "a.mp4", name="job-1.mp4")
    into_folder = fetch_film(elsewhere, url, str(tmp_path), name="job-1.mp4")
    assert (into_file, into_folder) == (tmp_path / "a.mp4", tmp_path / "job-1.mp4")
    assert into_file.read_bytes() == into_folder.read_bytes() == b"film"


def test_a_film_that_is_gone_is_named(objects: Objects, tmp_path: Path) -> None:
    with pytest.raises(ObjectNotFound, match=r"film\.mp4"):
        fetch_film(objects, objects.url(KEYS.film), tmp_path / "a.mp4", name="x.mp4")
    assert not (tmp_path / "a.mp4").exists()


def test_drop_films_deletes_what_any_attempt_stored_wherever_it_lies(objects: Objects, mp4: Path) -> None:
    first, second = (store_film(objects, film_keys("job-1", n, f"{n}" * 8), mp4, {}) for n in (1, 2))
    kept, _ = store_film(objects, film_keys("job-12", 1, "0" * 8), mp4, {})
    moved = objects.at((mp4.parent / "old").as_uri())
    old, _ = store_film(moved, KEYS, mp4, {})
    drop_films(objects, "job-1", old, "")
    assert [objects.url(key) for key in objects.list() if key.endswith(".mp4")] == [kept]
    assert [key for key in moved.list() if key.endswith(".mp4")] == []
    assert first != second
    drop_films(objects, "job-1", old)  # nothing is left to delete
