"""A pro job takes the only GPU from a free one, again and again; and the free one goes on."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.figures import median
from benchmarks.preemption_figures import Round, Way
from benchmarks.preemption_marks import first, last, steps_computed, steps_s
from benchmarks.preemption_stage import WAIT_S, Stage, manifest_of, staged
from callsheet.records.jobs import Job
from callsheet.store.protocol import Store
from tests.support.live import until

STEPS = 6
LAST_STOP = STEPS - 3  # the pro job comes in a step before the last two: later the rule lets a job end
PRO = {"tier": "pro", "size": "64x64", "frames": 41, "steps": 1}  # its first step is all that is asked of it
SEED = 20  # of the moments at which pro jobs come


def measure(folder: Path, rounds: int, say: Callable[[str], None]) -> list[Round]:
    """Each round renders one film twice: undisturbed, then with a pro job that comes at a random moment."""
    with staged(folder, "a100-0") as stage:
        shape = stage.shape()
        say(f"preemption: {rounds} rounds of {STEPS} steps at {shape['size']}, {shape['frames']} frames")
        return list(_rounds(stage, shape, rounds))


def _rounds(stage: Stage, shape: dict[str, Any], rounds: int) -> Iterator[Round]:
    chance = random.Random(SEED)
    stage.ended(stage.submit(**PRO))
    for seed in range(rounds):
        stage.forget_marks()
        film = {**shape, "steps": STEPS, "seed": seed}
        yield _round(stage, film, after=chance.randint(1, LAST_STOP), part=chance.random())


def _round(stage: Stage, film: dict[str, Any], *, after: int, part: float) -> Round:
    """The pro job comes when ``after`` steps of the free one are done and ``part`` (0 .. 1) of the next."""
    undisturbed = stage.submit(**film)
    alone = stage.ended(undisturbed)
    step_s = median(steps_s(stage.marks(undisturbed.id)))
    victim = stage.submit(**film)
    until(lambda: steps_computed(stage.marks(victim.id)) >= after, within_s=WAIT_S, what=f"step {after}")
    time.sleep(part * step_s)
    submitted = time.time()
    heir = stage.submit(**PRO)
    taken, disturbed = stage.ended(heir), stage.ended(victim)
    return _seen(stage, submitted, taken, disturbed, alone)


def _seen(stage: Stage, submitted: float, heir: Job, victim: Job, alone: Job) -> Round:
    marks, steps = stage.marks(), stage.marks(victim.id)
    told, ordered = first(steps, "told", since=submitted), first(steps, "ordered", since=submitted)
    saved = first(steps, "saved", since=told)
    stopped_at = last(steps, "step", until=saved)
    way = Way(
        submitted=submitted,
        looked=last(marks, "rebalance", until=ordered),  # beats ask for looks, too
        ordered=ordered,
        told=told,
        step_ended=stopped_at,
        saved=saved,
        handed_back=_event(stage.store, victim.id, "handed-back"),
        freed=first(steps, "freed", since=told),
        received=last(stage.marks(heir.id), "received", until=heir.claimed_at),  # its newest ticket
        claimed=heir.claimed_at,
        first_step=heir.claimed_at + manifest_of(heir)["timings"]["claim_to_first_step_s"],
    )
    attempts = stage.store.attempts(victim.id)
    resumed_at = attempts[-1].claimed_at
    return Round(
        way=way,
        restore_s=first(steps, "denoise", since=resumed_at) - resumed_at,
        step_s=median(steps_s(steps)),
        steps=victim.request.steps,
        preempted_after=steps_computed(one for one in steps if one.at <= saved),
        steps_computed=steps_computed(steps),
        steps_recorded=sum(one.to_step - one.from_step for one in attempts),
        preemptions=victim.preemptions,
        gpu_s=victim.gpu_s_useful + victim.gpu_s_wasted,
        gpu_s_undisturbed=alone.gpu_s_useful + alone.gpu_s_wasted,
        identical=victim.frames_sha256 == alone.frames_sha256,
    )


def _event(store: Store, job_id: str, kind: str) -> float:
    return next(event.at for event in store.events(job_id) if event.kind == kind)
