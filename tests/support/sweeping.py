"""The janitor's rounds over any store and any place for objects; ages are those of real clocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import redis

from callsheet.artifacts.checkpoints import save_checkpoint
from callsheet.artifacts.films import film_keys
from callsheet.artifacts.objects import Objects
from callsheet.beat import janitor
from callsheet.beat.janitor import Tools, sweep_checkpoints, sweep_erased
from callsheet.records.jobs import Checkpoint
from callsheet.settings import Settings
from callsheet.store.protocol import Lease, Store
from tests.support.jobs import ended, finish, op, running


@dataclass(frozen=True)
class Kit:
    """What the janitor works with."""

    store: Store
    settings: Settings
    objects: Callable[[], Objects]
    broker: Callable[[], redis.Redis | None] = lambda: None


def check_sweeps(tools: Tools) -> None:
    """AssertionError when something goes that must stay, or stays that must go."""
    objects = tools.objects()
    live, done = running(tools.store), running(tools.store)
    kept = [_kept(tools, live, step) for step in (1, 2, 3)]
    _kept(tools, done, 1)
    finish(tools.store, done)
    orphan = save_checkpoint(objects, "gone-job", 1, "token", 1, b"x", build="")
    assert sweep_checkpoints(tools) == 1
    assert objects.list("checkpoints") == sorted([*(one.key for one in kept), orphan.key])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(janitor, "WRITING_S", -60.0)  # everything is old
        patch.setattr(janitor, "ERASED_S", -60.0)
        assert sweep_checkpoints(tools) == 2
        assert objects.list("checkpoints") == [one.key for one in kept[1:]]
        _check_erased(tools)


def _check_erased(tools: Tools) -> None:
    job = ended(tools.store)
    tools.store.erase(job, op=op())
    tools.objects().put(film_keys(job, 1, "late").film, b"mp4")
    assert sweep_erased(tools) == 1
    assert job in tools.store.erasing()
    assert sweep_erased(tools) == 0
    assert job not in tools.store.erasing()


def _kept(tools: Tools, lease: Lease, step: int) -> Checkpoint:
    fence = (lease.job.id, lease.attempt, lease.token)
    checkpoint = save_checkpoint(tools.objects(), *fence, step, b"latents" * step, build="")
    assert tools.store.keep_checkpoint(*fence, checkpoint, useful_s=1, op=op()) is not None
    return checkpoint
