"""Whatever is killed, whenever: each job has one outcome, delivered once, and the film it would have had.

``ROUNDS`` rounds (``make test-chaos ROUNDS=100``), each with a kill at a random moment of four jobs that run
or wait. ``CHAOS_SEED`` plays the moments of an earlier run again; it is printed with the table.
"""

from __future__ import annotations

import random
import time
from itertools import pairwise
from typing import Any

import pytest

from callsheet.errors import JobFailed
from callsheet.records.jobs import Event
from callsheet.records.states import State
from tests.support.arena import Arena
from tests.support.chaos_table import ROUNDS, SEED, Round, played
from tests.support.live import until
from tests.support.theatre import WAIT_S

pytestmark = [pytest.mark.torch, pytest.mark.chaos]

KINDS = ("parent", "child", "controller", "node", "beat")
STEPS = 12
HEADER = [
    {"model": model, "seed": seed, "steps": STEPS} for model in ("tiny-wan", "tiny-ltx") for seed in (7, 8)
]
LATEST_S = 2.5  # about when the four jobs would be done
RECOVERED_S = 10.0


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_kill_harms_no_job(arena: Arena, number: int) -> None:
    one = play(arena, KINDS[number % len(KINDS)], number)
    played.append(one)
    assert one.clean, f"{one} (CHAOS_SEED={SEED})"
    assert all(seconds < RECOVERED_S for seconds in one.recovery_s), f"{one} (CHAOS_SEED={SEED})"
    arena.check_quiet()


def play(arena: Arena, kind: str, number: int) -> Round:
    """One round."""
    rng = random.Random(f"{SEED} {number}")
    arena.wait_ready(2)
    jobs, result = arena.film_chord(f"round {number}", HEADER)
    delay_s = rng.uniform(0, LATEST_S)
    time.sleep(delay_s)  # the random moment
    name = arena.choose(kind, rng)
    at = arena.harm(kind, name)
    return observe(arena, jobs, result, at, kind, f"round {number}, {name} after {delay_s:.2f} s")


def observe(arena: Arena, jobs: list[str], result: Any, at: float, kind: str, moment: str) -> Round:
    """What became of the jobs and of their chord."""
    ended = wait_for_all(arena, jobs, result)
    about = moment.partition(",")[0]
    histories = {job_id: arena.store.events(job_id) for job_id in jobs}
    outcomes = [[event.kind for event in events].count("succeeded") for events in histories.values()]
    bodies = arena.bodies(about)
    films = [arena.store.get(job_id).frames_sha256 for job_id in jobs]
    hit = {job_id: claimed for job_id in jobs if (claimed := claimed_again(histories[job_id], at))}
    computed = arena.steps_computed()
    return Round(
        kind=kind,
        moment=moment,
        jobs=len(jobs),
        recovery_s=tuple(claimed - at for claimed in hit.values()),
        resumed=sum(resumed(arena, job_id) for job_id in jobs),
        redone=tuple(computed[job_id] - STEPS for job_id in hit),
        identical=sum(film == arena.undisturbed(**asked) for film, asked in zip(films, HEADER, strict=True)),
        doubled=sum(count > 1 for count in outcomes) + (len(bodies) > 1),
        lost=sum(count < 1 for count in outcomes) + (not ended or bodies != [[7, 8, 7, 8]]),
    )


def wait_for_all(arena: Arena, jobs: list[str], result: Any) -> bool:
    """Wait until everything is delivered and the chord's body has run; False when that never comes."""

    def delivered() -> bool:
        records = arena.store.get_many(jobs)
        return all(record is not None and record.delivered for record in records) and bool(result.ready())

    try:
        until(delivered, within_s=WAIT_S)
    except AssertionError:
        return False
    return True


def claimed_again(events: list[Event], at: float) -> float:
    """Store time at which a job that the kill hit was claimed again; 0 = it was not hit."""
    lost = next((e.at for e in events if e.kind in ("lost", "healed") and e.at >= at), 0.0)
    return next((e.at for e in events if lost and e.kind == "claimed" and e.at > lost), 0.0)


def resumed(arena: Arena, job_id: str) -> int:
    """Attempts that went on at a kept step of a lost one; each begins just there."""
    rows = arena.store.attempts(job_id)
    pairs = [(a, b) for a, b in pairwise(rows) if a.end == "lost"]
    assert all(b.from_step == a.to_step for a, b in pairs), rows
    return sum(b.from_step > 0 for _, b in pairs)


def test_after_a_crash_the_steps_of_one_interval_are_done_again(arena: Arena) -> None:
    """Saved each 0.2 s, at 0.1 s for a step: of 9 finished steps at least 5 are kept."""
    job = arena.stopped_at("step 9", steps=STEPS)
    kept = until(lambda: (c := arena.record(job).checkpoint) and c.step >= 5 and c, within_s=WAIT_S)
    arena.kill_child(job.id)
    arena.open_gate(job.id)
    record = arena.check_whole(job, steps=STEPS)
    assert record.from_step >= kept.step
    assert arena.steps_computed()[job.id] - STEPS == 9 - record.from_step
    assert (record.crashes, record.attempt, record.restarts) == (1, 2, 0)


def test_a_job_that_kills_three_children_fails_with_the_evidence_and_the_fleet_lives(arena: Arena) -> None:
    job = arena.stopped_at("step 2", steps=STEPS)
    for crash in (1, 2, 3):
        assert arena.wait_at(job.id, "step 2").attempt == crash
        until(lambda: arena.record(job).step == 2, within_s=WAIT_S, what="step 2 told by a renewal")
        last = arena.kill_child(job.id)
    with pytest.raises(JobFailed) as caught:
        job.get(timeout=WAIT_S)
    record = until(lambda: (r := arena.record(job)).delivered and r, within_s=WAIT_S)
    assert (record.state, record.crashes, record.attempt) == (State.FAILED, 3, 3)
    for evidence in (f"{last}@test", "attempt 3", f"step 2 of {STEPS}", "denoise", "by this job: 3"):
        assert evidence in str(caught.value)
    assert [row.end for row in arena.store.attempts(job.id)] == ["lost"] * 3
    arena.wait_ready()
    arena.check_whole(arena.submit(steps=STEPS), steps=STEPS)


def test_preemptions_do_not_count_as_crashes(arena: Arena) -> None:
    job = arena.stopped_at("step 2", "step 3", "step 4", steps=STEPS)
    harms = [(2, "kill"), (2, "preempt"), (3, "kill"), (3, "preempt"), (4, "preempt")]
    for attempt, (step, harm) in enumerate(harms, start=1):
        assert arena.wait_at(job.id, f"step {step}").attempt == attempt
        if harm == "kill":
            arena.kill_child(job.id)
        else:
            arena.preempt(job.id)
            arena.wait_attempt(job.id, attempt + 1)
    record = arena.check_whole(job, steps=STEPS)
    assert (record.crashes, record.preemptions, record.attempt) == (2, 3, 6)
