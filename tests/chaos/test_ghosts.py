"""Workers that fall silent and come back, and connections that are cut: nothing is done twice."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.support.arena import Arena
from tests.support.live import until
from tests.support.theatre import WAIT_S

pytestmark = [pytest.mark.torch, pytest.mark.chaos]

STEPS = 12
LONG = 40  # steps, so that a ghost is not at its end before it renews


@pytest.mark.parametrize("place", ["step 2", "phase store"])
def test_a_ghost_writes_nothing(arena: Arena, place: str) -> None:
    """Stopped for longer than its lease, while another worker makes the film; then it goes on."""
    arena.wait_ready(2)
    job = arena.stopped_at(place, steps=LONG)
    name = arena.worker_of(job.id)
    pids = arena.freeze(name)
    try:
        arena.open_gate(job.id)
        record = arena.check_whole(job, steps=LONG)
        before = (arena.store.events(job.id), arena.store.attempts(job.id), arena.objects_of(job.id))
    finally:
        arena.thaw(pids)
    until(lambda: any(g.name == f"{name}@test" and not g.job_id for g in arena.ready()), within_s=WAIT_S)
    assert (record.attempt, record.crashes) == (2, 1)
    assert record.worker != f"{name}@test"
    assert arena.record(job) == record
    after = (arena.store.events(job.id), arena.store.attempts(job.id), arena.objects_of(job.id))
    assert after[:2] == before[:2]
    films = [key for key in after[2] if key.startswith("jobs/")]
    assert len(films) == 2
    assert all(f"/{record.attempt}-{record.token[:8]}/" in key for key in films)
    until(lambda: arena.objects_of(job.id) == films, within_s=WAIT_S, what="no checkpoint is left")
    assert arena.child_of(name) in pids  # it lives, and its weights stay
    arena.check_quiet()


def few_left(arena: Arena, jobs: list[str], most: int) -> bool:
    """Whether at most so many jobs have not ended."""
    return sum(not job.ended for job in arena.store.get_many(jobs) if job) <= most


def cut(arena: Arena, *kinds: str) -> None:
    """Kill every connection of these kinds to the server."""
    client: Any = arena.valkey.client()
    for kind in kinds:
        client.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
    client.close()


def test_connections_that_are_cut_under_load_double_nothing(arena: Arena) -> None:
    arena.wait_ready(2)
    header = [{"model": "tiny-ltx", "seed": 7 + number % 2, "steps": STEPS} for number in range(6)]
    jobs, result = arena.film_chord("cut", header)
    for left, kinds in ((6, ("normal",)), (4, ("normal", "pubsub")), (2, ("normal", "pubsub"))):
        until(partial(few_left, arena, jobs, left), within_s=WAIT_S)
        cut(arena, *kinds)
    until(lambda: all(job and job.delivered for job in arena.store.get_many(jobs)), within_s=WAIT_S)
    until(result.ready, within_s=WAIT_S)
    assert arena.bodies("cut") == [[asked["seed"] for asked in header]]
    for job_id, asked in zip(jobs, header, strict=True):
        record = arena.store.get(job_id)
        assert [event.kind for event in arena.store.events(job_id)].count("succeeded") == 1
        assert record.frames_sha256 == arena.undisturbed(**asked)
        assert (record.attempt, record.crashes) == (1, 0)
    arena.check_quiet()
