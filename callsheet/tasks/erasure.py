"""Erasing a job: its prompt leaves the record, its film and checkpoints leave object storage."""

from __future__ import annotations

import uuid

from callsheet.artifacts.checkpoints import drop_all
from callsheet.artifacts.films import drop_films
from callsheet.artifacts.objects import Objects
from callsheet.errors import StorageError
from callsheet.store.protocol import Store


def erase(store: Store, objects: Objects, job_id: str) -> None:
    """Erase an ended job. The janitor deletes its objects once more: a lost worker may still write some.

    Raises JobNotFound, Refused (it has not ended), StorageError (the record is erased then).
    """
    before = store.erase(job_id, op=uuid.uuid4().hex)
    try:
        drop_films(objects, before.id, before.film, before.manifest)
        drop_all(objects, before.id)
    except StorageError as fault:
        raise StorageError(
            f"{fault} The record of job {before.id} is erased; the janitor deletes its film and checkpoints "
            "when the storage answers, or repeat the command."
        ) from fault
