"""Keeping steps of one attempt: a snapshot becomes an object, and the record points at it."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from callsheet.artifacts.checkpoints import drop_checkpoints, save_checkpoint
from callsheet.artifacts.objects import Objects
from callsheet.errors import Fenced
from callsheet.store.protocol import Lease, Store
from callsheet.workers.replay import Snapshot, dump

log = logging.getLogger(__name__)


class Keeping:
    """Saves of one attempt, whoever asks for them: the background, or an order to yield."""

    def __init__(
        self, lease: Lease, store: Store, objects: Callable[[], Objects], extra: Mapping[str, Any], build: str
    ) -> None:
        self._lease, self._store, self._objects = lease, store, objects
        self._extra = extra  # says to which run the checkpoint belongs
        self._build = build if lease.job.strict else ""  # a strict job waits for it from the first save on
        self.kept_step = 0  # the newest step that this attempt has kept
        self.kept_useful_s = 0.0  # GPU-seconds of this attempt that it keeps

    def save(self, snapshot: Snapshot, useful_s: float) -> None:
        """Write the object, then move the pointer; drop what no longer counts.

        ``useful_s``: GPU-seconds of this attempt up to the snapshot. Raises StorageError, Unreachable (what
        was kept before stays), Fenced (nothing of ours counts any more).
        """
        objects, lease = self._objects(), self._lease
        checkpoint = save_checkpoint(
            objects,
            lease.job.id,
            lease.attempt,
            lease.token,
            snapshot.step,
            dump(snapshot, self._extra),
            build=self._build,
        )
        dropped = self._store.keep_checkpoint(
            lease.job.id, lease.attempt, lease.token, checkpoint, useful_s=useful_s, op=uuid.uuid4().hex
        )
        if dropped is None:
            drop_checkpoints(objects, [checkpoint])
            raise Fenced(
                f"job {lease.job.id} has a newer attempt: step {snapshot.step} of this one is dropped"
            )
        if checkpoint not in dropped:
            self.kept_step, self.kept_useful_s = snapshot.step, useful_s
        drop_checkpoints(objects, dropped)
