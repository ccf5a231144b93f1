"""URLs of places and objects, and which keys are allowed."""

from __future__ import annotations

import pytest

from callsheet.artifacts.places import Place, check_key, parse_place, split_url
from callsheet.errors import StorageError


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("s3://films", Place("s3", "films")),
        ("s3://films/", Place("s3", "films")),
        ("s3://films/a/b/", Place("s3", "films", "a/b")),
        ("file:///var/films", Place("file", "/var/films")),
        ("file:///var/my%20films/", Place("file", "/var/my films")),
        ("file:///var/my films", Place("file", "/var/my films")),
        ("memory://", Place("memory", "")),
        ("memory://test/a", Place("memory", "test", "a")),
    ],
)
def test_a_storage_url_names_a_place(url: str, place: Place) -> None:
    assert parse_place(url) == place


@pytest.mark.parametrize(
    "url", ["", "films", "/var/films", "file://var/films", "file:films", "s3://", "http://x/y", "gs://b"]
)
def test_any_other_url_is_refused_with_what_is_allowed(url: str) -> None:
    with pytest.raises(StorageError, match=r"s3://bucket.*file:///absolute.*memory://"):
        parse_place(url)


@pytest.mark.parametrize(
    "url", ["s3://films", "s3://films/a/b", "file:///var/my%20films", "memory:", "memory://t", "memory://t/x"]
)
def test_an_objects_url_splits_into_a_place_and_a_key_that_lead_back_to_it(url: str) -> None:
    whole = parse_place(url).url("jobs/7/1-abc/film.mp4")
    place, key = split_url(whole)
    assert key == "film.mp4"
    assert parse_place(place).url(key) == whole


@pytest.mark.parametrize(
    "url", ["film.mp4", "http://host/film.mp4", "s3://bucket", "file:///var/films/", "s3:///k"]
)
def test_what_is_no_objects_url_does_not_split(url: str) -> None:
    with pytest.raises(StorageError):
        split_url(url)


@pytest.mark.parametrize("key", ["a", "jobs/1/2-ab/film.mp4", "A_b=c+d@e,f-1.2", "a" * 900])
def test_plain_keys_are_allowed(key: str) -> None:
    assert check_key(key) == key


@pytest.mark.parametrize(
    "key",
    ["", "/a", "a/", "a//b", "..", "a/../b", ".", "./a", ".a", "a b", "a#1", "a\\b", "a\n", "ü", "a" * 901],
)
def test_keys_that_a_store_might_read_otherwise_are_refused(key: str) -> None:
    with pytest.raises(StorageError, match="no key"):
        check_key(key)
