"""What the janitor clears away: objects that no record needs, erased jobs' objects, old records.

Controllers like those of ``controllers.py``, for a round of its own: object storage may be slow or gone, and
nothing here is urgent. Each run is bounded, and what it does not come to is left to the next one.

Object storage is swept by what lies there, so ``storage_url`` belongs to one deployment: two of them in one
bucket need a prefix each.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from typing import Protocol

import redis

from callsheet.artifacts.checkpoints import folder
from callsheet.artifacts.films import film_folder
from callsheet.artifacts.objects import Entry, Objects
from callsheet.errors import StorageError
from callsheet.records.jobs import FORMAT, Job
from callsheet.records.states import State
from callsheet.settings import Settings
from callsheet.store.protocol import Store

log = logging.getLogger(__name__)

WRITING_S = 600.0  # an object this young may be about to get into its record
ERASED_S = 60.0  # after an erasure, a worker that has not heard of it may write for so long
OBJECTS = 1000  # deleted in one run
RUN_S = 30.0  # after so long a run deletes nothing more: a dead storage costs 20 s for each object
BATCH = 500  # jobs looked up at once


class Tools(Protocol):
    """What the janitor works with."""

    @property
    def store(self) -> Store:
        """The records."""
        ...

    @property
    def settings(self) -> Settings:
        """For how long checkpoints of failed jobs are kept."""
        ...

    @property
    def objects(self) -> Callable[[], Objects]:
        """Object storage, opened when it is needed."""
        ...

    @property
    def broker(self) -> Callable[[], redis.Redis | None]:
        """A client on the broker's Redis, in its database; None for a broker that is none."""
        ...


def sweep_checkpoints(tools: Tools) -> int:
    """Delete checkpoints that nothing will resume from. Answers how many. Raises StorageError."""
    objects, bin_ = tools.objects(), Bin(tools.objects())
    for entries in _batches(objects.entries("checkpoints")):
        jobs = _owners(tools.store, list(entries))
        now = tools.store.now()
        for name, its in entries.items():
            for entry in its:
                if why := _needless(entry, jobs.get(name), now, tools.settings.checkpoint_retention_s):
                    bin_.drop(entry.key, why)
        if bin_.full:
            break
    return bin_.dropped


def sweep_erased(tools: Tools) -> int:
    """Delete what erased jobs still have in storage, until nothing more comes. Answers how many objects."""
    bin_ = Bin(tools.objects())
    for job_id, erased_at in tools.store.erasing().items():
        if bin_.full:
            break
        try:
            keys = [key for place in _places(job_id) for key in bin_.objects.list(place)]
        except StorageError as fault:
            log.warning("objects of the erased job %s stay for now: %s", job_id, fault)
            continue
        for key in keys:
            bin_.drop(key, "its job was erased")
        if not keys and tools.store.now() - erased_at > ERASED_S:
            tools.store.erased(job_id)
    return bin_.dropped


def sweep_records(tools: Tools) -> int:
    """Take records past their retention out of the indexes, also when nothing else happens.

    Answers how many records are left.
    """
    return sum(tools.store.counts().values())


class Bin:
    """Deletes objects, up to a bound in number and time; one that stays does not stop the rest."""

    def __init__(self, objects: Objects, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.objects = objects
        self.dropped = 0
        self._clock = clock
        self._until = clock() + RUN_S

    @property
    def full(self) -> bool:
        """Whether this run has done enough."""
        return self.dropped >= OBJECTS or self._clock() > self._until

    def drop(self, key: str, why: str) -> None:
        """Delete one object, unless this run has done enough."""
        if self.full:
            return
        try:
            self.objects.delete(key)
        except StorageError as fault:
            log.warning("%s stays for now: %s", key, fault)
        else:
            self.dropped += 1
            log.info("deleted %s: %s", key, why)


def _needless(entry: Entry, job: Job | None, now: float, retention_s: float) -> str:
    """Why this object can go; "" = it stays."""
    young = now - entry.modified < WRITING_S
    if job is None:
        return "" if young else "its job has no record any more"
    if job.format > FORMAT:  # who knows that format sweeps it
        return ""
    if job.state is State.SUCCEEDED:
        return "its job succeeded"
    if job.ended and now - job.ended_at > retention_s:
        return f"its job ended as {job.state.value}, and nobody took it up again"
    kept = {checkpoint.key for checkpoint in (job.checkpoint, job.checkpoint_before) if checkpoint}
    return "" if young or entry.key in kept else "its job does not point at it"


def _batches(entries: Iterable[Entry]) -> Iterator[dict[str, list[Entry]]]:
    """Objects by the name of their job, some jobs at a time. A job may come in several pieces."""
    pieces = ((name, list(its)) for name, its in groupby(entries, lambda entry: entry.key.split("/")[1]))
    while batch := list(islice(pieces, BATCH)):
        joined: dict[str, list[Entry]] = {}
        for name, its in batch:
            joined.setdefault(name, []).extend(its)
        yield joined


def _owners(store: Store, names: list[str]) -> dict[str, Job]:
    """Jobs by the name of their folder, which is their id: the store records no id that can be no key.

    They are read after the objects were listed, so they know of them.
    """
    found = zip(names, store.get_many(names), strict=True)
    return {name: job for name, job in found if job is not None}


def _places(job_id: str) -> tuple[str, str]:
    return folder(job_id), film_folder(job_id)
