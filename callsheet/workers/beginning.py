"""Where an attempt begins: at the newest kept step that is whole and belongs to it, else at step 0."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from callsheet.artifacts.checkpoints import read_checkpoint
from callsheet.artifacts.objects import Objects
from callsheet.errors import CheckpointDamaged, ObjectNotFound
from callsheet.records.jobs import Checkpoint, Job
from callsheet.workers.insist import persist
from callsheet.workers.replay import Belonging, CheckpointRefused, Snapshot, check_belongs, parse

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Beginning:
    """What the attempt begins with, and why."""

    snapshot: Snapshot | None = None  # None: step 0
    exact: bool = True  # False: the film will be close to the undisturbed one, not identical
    reason: str = ""  # "" = there was nothing to resume

    @property
    def step(self) -> int:
        """Finished steps."""
        return self.snapshot.step if self.snapshot else 0


def find_beginning(
    job: Job, here: Belonging, objects: Callable[[], Objects], *, patience_s: float
) -> Beginning:
    """The newest of the job's checkpoints that can be used here.

    One that is damaged, missing or of another run is passed over with its reason. A strict job resumes only
    bit for bit. Raises StorageError when the storage does not answer for ``patience_s``: then nothing is
    known of the checkpoints, and the work in them is not to be given up.
    """
    reasons: list[str] = []
    for kept in (job.checkpoint, job.checkpoint_before):
        if kept is None:
            continue
        try:
            return _resume(job, kept, here, objects, patience_s, reasons)
        except (CheckpointDamaged, CheckpointRefused, ObjectNotFound) as refusal:
            log.warning("checkpoint of job %s at step %s: %s", job.id, kept.step, refusal)
            reasons.append(f"step {kept.step}: {refusal}")
    return Beginning(reason="; ".join(reasons))


def _resume(
    job: Job,
    kept: Checkpoint,
    here: Belonging,
    objects: Callable[[], Objects],
    patience_s: float,
    passed_over: list[str],
) -> Beginning:
    data = persist(
        lambda: read_checkpoint(objects(), kept), patience_s, give_up=(CheckpointDamaged, ObjectNotFound)
    )
    snapshot = parse(data)
    differs = check_belongs(Belonging(snapshot.extra["must"], snapshot.extra["exact"]), here)
    if differs and job.strict:
        raise CheckpointRefused(f"its film would not be bit for bit: {', '.join(differs)}")
    said = [f"at step {snapshot.step}", *passed_over]
    if differs:
        said.append(f"not exact: {', '.join(differs)}")
    return Beginning(snapshot, not differs, "; ".join(said))
