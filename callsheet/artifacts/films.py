"""Where a job's film lies, and in which order its two objects are written."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from callsheet.artifacts.objects import Objects
from callsheet.artifacts.places import is_segment, split_url


@dataclass(frozen=True, slots=True)
class FilmKeys:
    """Keys of what one attempt stores."""

    film: str  # the mp4
    manifest: str  # the JSON with everything needed to make it again


def film_keys(job_id: str, attempt: int, token: str) -> FilmKeys:
    """Keys that no other attempt writes: the fence (attempt, token) is part of them."""
    folder = f"{film_folder(job_id)}/{attempt}-{token[:8]}"
    return FilmKeys(f"{folder}/film.mp4", f"{folder}/film.json")


def film_folder(job_id: str) -> str:
    """Below it lies what the attempts of one job store.

    A job id that cannot be part of a key (it came from a caller's ``task_id``) is replaced by its hash.
    """
    name = job_id if is_segment(job_id) else f"id-{hashlib.sha256(job_id.encode()).hexdigest()[:32]}"
    return f"jobs/{name}"


def store_film(objects: Objects, keys: FilmKeys, mp4_path: Path, manifest: dict[str, Any]) -> tuple[str, str]:
    """Store the film first and its manifest last, so that a manifest always has its film.

    Answers (film URL, manifest URL). Raises StorageError: then there is no manifest, and nothing half.
    """
    text = json.dumps(manifest, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False)
    objects.put(keys.film, mp4_path)
    objects.put(keys.manifest, text.encode())
    return objects.url(keys.film), objects.url(keys.manifest)


def fetch_film(objects: Objects, film_url: str, path: str | Path, *, name: str) -> Path:
    """Download a film to ``path``, or below it as ``name`` when it is a folder; it appears when it is whole.

    The credentials are those of ``objects``, the place is the URL's own. Raises ObjectNotFound, StorageError.
    """
    place, key = split_url(film_url)
    target = Path(path)
    return objects.at(place).get_to(key, target / name if target.is_dir() else target)


def drop_films(objects: Objects, job_id: str, *urls: str) -> None:
    """Delete what any attempt of the job stored here, and the objects at ``urls``, wherever they lie.

    Raises StorageError.
    """
    for key in objects.list(film_folder(job_id)):
        objects.delete(key)
    for url in filter(None, urls):
        place, key = split_url(url)
        objects.at(place).delete(key)
