"""Chords, chains and groups whose members are preempted, killed and cancelled: what follows happens once."""

from __future__ import annotations

import uuid

import pytest
from celery import chain, chord, group
from celery.result import AsyncResult

from callsheet import generate_video
from callsheet.errors import JobCancelled
from tests.support.arena import Arena
from tests.support.host_app import notes
from tests.support.hosting import task
from tests.support.live import until
from tests.support.theatre import CAT, WAIT_S

pytestmark = [pytest.mark.torch, pytest.mark.chaos]

STEPS = 12


def member(job_id: str, seed: int) -> object:
    """One film of a canvas, under an id that is known before."""
    return generate_video.si(**{**CAT, "seed": seed, "steps": STEPS}).set(task_id=job_id)


def gated(arena: Arena, *places: str) -> str:
    """Id of a job to come, which will stand there."""
    job_id = str(uuid.uuid4())
    (arena.gates / job_id).write_text("\n".join(places))
    return job_id


def test_a_chord_of_preempted_killed_and_calm_members_fires_once_in_order(arena: Arena) -> None:
    about = str(uuid.uuid4())
    ids = [gated(arena, "step 3"), gated(arena, "step 4"), gated(arena)]
    header = [member(job_id, seed) for seed, job_id in enumerate(ids, start=1)]
    result = chord(header)(task(arena.host, "note", about=about))
    arena.wait_at(ids[0], "step 3")
    arena.preempt(ids[0])
    arena.wait_at(ids[1], "step 4")
    arena.kill_child(ids[1])
    arena.open_gate(ids[1])
    assert result.get(timeout=WAIT_S) == about
    assert arena.bodies(about) == [[1, 2, 3]]
    records = [
        arena.check_whole(generate_video.AsyncResult(i), seed=n, steps=STEPS) for n, i in enumerate(ids, 1)
    ]
    assert [(record.preemptions, record.crashes) for record in records] == [(1, 0), (0, 1), (0, 0)]
    assert arena.bodies(about) == [[1, 2, 3]]


def test_a_chord_with_a_cancelled_member_fails_once(arena: Arena) -> None:
    about = str(uuid.uuid4())
    ids = [gated(arena, "step 3"), gated(arena, "step 3")]
    header = [member(job_id, seed) for seed, job_id in enumerate(ids, start=1)]
    result = chord(header)(task(arena.host, "note", about=about))
    arena.wait_at(ids[0], "step 3")
    arena.wait_at(ids[1], "step 3")
    arena.preempt(ids[0])
    generate_video.AsyncResult(ids[1]).cancel()
    with pytest.raises(Exception, match="cancelled"):
        AsyncResult(result.id, app=arena.host).get(timeout=WAIT_S)
    assert arena.check_whole(generate_video.AsyncResult(ids[0]), seed=1, steps=STEPS).preemptions == 1
    with pytest.raises(JobCancelled):
        generate_video.AsyncResult(ids[1]).get(timeout=WAIT_S)
    assert arena.bodies(about) == []
    arena.check_quiet()


def test_a_chain_goes_on_once_after_a_preempted_and_a_killed_step(arena: Arena) -> None:
    about = str(uuid.uuid4())
    ids = [gated(arena, "step 3"), gated(arena, "step 4")]
    result = chain(member(ids[0], 1), member(ids[1], 2), task(arena.host, "note", about=about))()
    arena.wait_at(ids[0], "step 3")
    arena.preempt(ids[0])
    until(lambda: arena.store.get_many([ids[1]])[0], within_s=WAIT_S, what="the chain's second film")
    arena.wait_at(ids[1], "step 4")
    arena.kill_child(ids[1])
    arena.open_gate(ids[1])
    assert result.get(timeout=WAIT_S) == about
    assert [said for _, said in notes(arena.host, about)] == [2]
    arena.check_quiet()


def test_a_group_answers_in_order(arena: Arena) -> None:
    ids = [gated(arena, "step 3"), gated(arena, "step 3"), gated(arena)]
    result = group(member(job_id, seed) for seed, job_id in enumerate(ids, start=1))()
    arena.wait_at(ids[0], "step 3")
    arena.kill_child(ids[0])
    arena.open_gate(ids[0])
    arena.wait_at(ids[1], "step 3")
    arena.preempt(ids[1])
    assert [film["seed"] for film in result.join(timeout=WAIT_S)] == [1, 2, 3]
    arena.check_quiet()


def test_a_crash_between_the_end_and_its_delivery_fires_the_chord_once(arena: Arena) -> None:
    about = str(uuid.uuid4())
    ids = [gated(arena, "deliver"), gated(arena)]
    header = [member(job_id, seed) for seed, job_id in enumerate(ids, start=1)]
    pids = arena.hold_beats()
    try:
        result = chord(header)(task(arena.host, "note", about=about))
        arena.wait_at(ids[0], "deliver")
        arena.kill_child(ids[0])
        assert not arena.store.get(ids[0]).delivered
    finally:
        arena.thaw(pids)
    arena.open_gate(ids[0])
    assert result.get(timeout=WAIT_S) == about
    until(lambda: arena.store.get(ids[0]).delivered, within_s=WAIT_S)
    assert arena.bodies(about) == [[1, 2]]
    assert arena.store.get(ids[0]).crashes == 0
    arena.check_quiet()
