"""Checkpoints in object storage: where they lie, and whether one is whole. Their content is the workers' affair."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable

from callsheet.artifacts.films import film_keys
from callsheet.artifacts.objects import Objects
from callsheet.errors import CheckpointDamaged, StorageError
from callsheet.records.jobs import Checkpoint

log = logging.getLogger(__name__)


def folder(job_id: str) -> str:
    """Below it lie the checkpoints of one job."""
    return "checkpoints/" + film_keys(job_id, 0, "").film.split("/")[1]


def save_checkpoint(
    objects: Objects, job_id: str, attempt: int, token: str, step: int, data: bytes, *, build: str = ""
) -> Checkpoint:
    """Write one, whole or not at all, under a key of this attempt. Raises StorageError."""
    key = f"{folder(job_id)}/{attempt}-{token[:8]}/{step:05d}.safetensors"
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
    for checkpoint in checkpoints:
        try:
            objects.delete(checkpoint.key)
        except StorageError as fault:
            log.info("%s stays for the janitor: %s", checkpoint.key, fault)


def drop_all(objects: Objects, job_id: str) -> None:
    """Delete every checkpoint of a job. Raises StorageError."""
    for key in objects.list(folder(job_id)):
        objects.delete(key)
