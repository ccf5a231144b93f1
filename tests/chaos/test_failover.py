"""A Sentinel fail-over of store and broker under load: every part goes on, what was confirmed is there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callsheet import VideoJob, generate_video
from callsheet.app import app
from callsheet.errors import Unreachable
from callsheet.tasks.generate import submitter
from tests.support.crowd import SEEDS, Crowd
from tests.support.live import until
from tests.support.sentinel import SentinelTrio
from tests.support.theatre import CAT, WAIT_S, Theatre

pytestmark = [pytest.mark.torch, pytest.mark.chaos]

SIZE = 12
LATE = 3  # submits on the way
CONTROLLERS = ("control-1", "control-2")
BEATS = tuple(f"beat-{name}" for name in CONTROLLERS)


@pytest.fixture(scope="module")
def trio() -> Iterator[SentinelTrio]:
    with SentinelTrio() as found:
        yield found


@pytest.fixture(scope="module")
def theatre(
    trio: SentinelTrio, tmp_path_factory: pytest.TempPathFactory, tiny_models: Path
) -> Iterator[Theatre]:
    """Two A100s that know only the Sentinels."""
    url = trio.url()
    with Theatre(
        tmp_path_factory.mktemp("failover"),
        trio.primary,
        broker_url=url,
        models_dir=tiny_models,
        pace_s=0.05,
        replica_wait_ms=700.0,
    ) as stage:
        stage.open("a100-0", "a100-1")
        yield stage


def confirmed(**changes: Any) -> VideoJob:
    """A job that a replica has, says the answer. One of which that was not sure counts for nothing."""

    def sure() -> VideoJob | None:
        answer = submitter().submit({**CAT, **changes})
        return generate_video.AsyncResult(answer.job_id) if answer.replicated else None

    job: VideoJob = until(sure, what="a submit that a replica has")
    return job


def insist(theatre: Theatre, key: str, seed: int) -> tuple[VideoJob, float]:
    """Submit one job, again and again under one key while nobody answers, and until it is there for good."""
    began = time.monotonic()

    def there() -> VideoJob | None:
        try:
            return theatre.submit(idempotency_key=key, seed=seed)
        except Unreachable:
            return None

    job: VideoJob = until(there, within_s=WAIT_S, what="a submit that is taken")
    return job, time.monotonic() - began


def worked(theatre: Theatre, name: str, sign: str) -> int:
    """How often a process said that it did something."""
    return theatre.log(name).read_text(errors="replace").count(sign)


def goes_on(theatre: Theatre, name: str, sign: str) -> None:
    """Wait until it does it again."""
    assert theatre.processes[name].poll() is None, theatre.tail(name)
    before = worked(theatre, name, sign)
    until(lambda: worked(theatre, name, sign) > before, within_s=WAIT_S, what=f"{name}: {sign}")


def test_a_fail_over_under_load_costs_nothing_that_was_confirmed(
    theatre: Theatre, trio: SentinelTrio
) -> None:
    crowd = Crowd(theatre, 0)
    for number in range(SIZE):
        crowd.add(confirmed(seed=number % SEEDS), number % SEEDS)
    crowd.wait_under_load()
    before, began = crowd.ended(), time.monotonic()
    trio.kill_primary()
    late = [insist(theatre, f"late-{number}", 0) for number in range(LATE)]
    trio.wait_promoted(within_s=30.0)
    promoted_s = time.monotonic() - began
    on_s = crowd.time_until_next_end(before)
    for number in range(LATE):
        crowd.add(insist(theatre, f"late-{number}", 0)[0], 0)
    crowd.add(insist(theatre, "after", 1)[0], 1)
    records = crowd.check()
    adopted = sum("adopted" in {e.kind for e in theatre.store.events(record.id)} for record in records)
    print(
        f"\nfail-over: promoted after {promoted_s:.1f} s, a submit took {max(s for _, s in late):.1f} s, "
        f"next end {on_s:.1f} s after the promotion, {adopted} attempts adopted"
    )


def test_both_controllers_and_both_beats_work_afterwards(theatre: Theatre) -> None:
    for name in BEATS:
        goes_on(theatre, name, "Sending due task")
    for name in CONTROLLERS:
        goes_on(theatre, name, "succeeded")
    found = app.control.ping(timeout=5.0)
    names = sorted(name for answer in found for name in answer)
    assert names == ["a100-0@test", "a100-1@test", "control-1@test", "control-2@test"]
