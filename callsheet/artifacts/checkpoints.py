"""Checkpoints in object storage: where they lie, and whether one is whole. Only bytes are known here."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable

from callsheet.artifacts.films import film_folder
from callsheet.artifacts.objects import Objects
from callsheet.errors import CheckpointDamaged, StorageError
from callsheet.records.jobs import Checkpoint

log = logging.getLogger(__name__)


def folder(job_id: str) -> str:
    """Below it lie the checkpoints of one job."""
    return "checkpoints/" + film_folder(job_id).removeprefix("jobs/")


def save_checkpoint(
    objects: Objects, job_id: str, attempt: int, token: str, step: int, data: bytes, *, build: str = ""
) -> Checkpoint:
    """Write one, whole or not at all, under a key of this attempt. Raises StorageError."""
    key = f"{_of_attempt(job_id, attempt, token)}/{step:05d}.safetensors"
    objects.put(key, data)
    return Checkpoint(step, key, hashlib.sha256(data).hexdigest(), len(data), build)


def read_checkpoint(objects: Objects, checkpoint: Checkpoint) -> bytes:
    """Its bytes. Raises CheckpointDamaged (not what was written), ObjectNotFound, StorageError."""
    data = objects.get(checkpoint.key)
    if len(data) != checkpoint.size or hashlib.sha256(data).hexdigest() != checkpoint.sha256:
        raise CheckpointDamaged(
            f"the checkpoint {objects.url(checkpoint.key)} is not what was written: {len(data):,} bytes of "
            f"{checkpoint.size:,}, or other ones. The job goes on from an older one, or from step 0."
        )
    return data


def drop_checkpoints(objects: Objects, checkpoints: Iterable[Checkpoint]) -> None:
    """Delete them; what fails is left to the janitor."""
    _drop_keys(objects, [checkpoint.key for checkpoint in checkpoints])


def drop_all(objects: Objects, job_id: str) -> None:
    """Delete every checkpoint of a job. Raises StorageError."""
    for key in objects.list(folder(job_id)):
        objects.delete(key)


def _of_attempt(job_id: str, attempt: int, token: str) -> str:
    return f"{folder(job_id)}/{attempt}-{token[:8]}"


def _drop_keys(objects: Objects, keys: Iterable[str]) -> None:
    for key in keys:
        try:
            objects.delete(key)
        except StorageError as fault:
            log.info("%s stays for the janitor: %s", key, fault)
