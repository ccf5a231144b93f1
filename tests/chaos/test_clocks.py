"""Clocks a minute apart: jobs, deadlines, ticks, healing and reaping follow the store's clock alone."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from callsheet import generate_video
from callsheet.app import app
from callsheet.records.states import State
from tests.support.arena import Arena
from tests.support.live import until
from tests.support.theatre import CAT, WAIT_S
from tests.support.valkey import Valkey

pytestmark = [pytest.mark.torch, pytest.mark.chaos]

SKEW = {"PYTHONPATH": str(Path(__file__).parents[1] / "support" / "skewed"), "SKEW_S": "60"}
STEPS = 12
AHEAD_S = 6.0  # less than the skew: by the skewed clocks it has passed already
NUMBER = re.compile(r"callsheet\.tick\[.*'number': (\d+)")


@pytest.fixture(scope="module")
def skewed(tmp_path_factory: pytest.TempPathFactory, tiny_models: Path) -> Iterator[Arena]:
    """Of two workers, two controllers and two beats one each lives a minute ahead."""
    with (
        Valkey() as valkey,
        Arena(tmp_path_factory.mktemp("clocks"), valkey, models_dir=tiny_models) as arena,
    ):
        app.use(arena.settings)
        arena.controller("control-1")
        arena.control_worker("control-2", env=SKEW)
        arena.beat("beat-control-2", env=SKEW)
        arena.paced_worker("a100-0")
        arena.paced_worker("a100-1", env=SKEW)
        arena.wait_ready(2)
        yield arena


def test_jobs_run_once_on_both_workers(skewed: Arena) -> None:
    jobs = [(skewed.submit(seed=seed, steps=STEPS), seed) for seed in (1, 2, 1, 2, 1, 2)]
    records = [skewed.check_whole(job, seed=seed, steps=STEPS) for job, seed in jobs]
    assert {record.worker for record in records} == {"a100-0@test", "a100-1@test"}
    for record in records:
        assert (record.attempt, record.ticket, record.crashes) == (1, 1, 0)
        kinds = [event.kind for event in skewed.store.events(record.id)]
        assert kinds == ["submitted", "released", "claimed", "succeeded"]
        assert abs(record.ended_at - time.time()) < WAIT_S
    skewed.check_quiet()


def test_a_deadline_and_a_start_to_come_are_kept_by_the_stores_clock(skewed: Arena) -> None:
    kwargs = {**CAT, "steps": STEPS}
    in_time = generate_video.apply_async(kwargs=kwargs, expires=AHEAD_S * 5)
    later = generate_video.apply_async(kwargs=kwargs, countdown=AHEAD_S)
    never = generate_video.apply_async(kwargs=kwargs, countdown=AHEAD_S, expires=AHEAD_S / 2)
    assert skewed.check_whole(in_time, steps=STEPS).attempt == 1
    record = skewed.check_whole(later, steps=STEPS)
    assert record.started_at - record.created_at >= AHEAD_S - 0.5
    ended = until(lambda: (r := skewed.record(never)).ended and r, within_s=WAIT_S)
    assert ended.state is State.EXPIRED
    assert AHEAD_S / 2 - 0.5 <= ended.ended_at - ended.created_at < AHEAD_S


@pytest.mark.parametrize("name", ["a100-0", "a100-1"])
def test_a_lost_attempt_is_reaped_and_resumed(skewed: Arena, name: str) -> None:
    """Only the one whose worker is frozen, and not before its lease has run out."""
    jobs = [skewed.stopped_at("step 3", steps=STEPS) for _ in range(2)]
    job, calm = sorted(jobs, key=lambda one: skewed.worker_of(one.id) != name)
    began = skewed.store.now()
    pids = skewed.freeze(name)
    try:
        until(lambda: skewed.record(job).crashes, within_s=WAIT_S, what="reaped")
        lost = next(event for event in skewed.store.events(job.id) if event.kind == "lost")
        assert lost.at - began >= skewed.settings.lease_s - skewed.settings.renew_s - 0.5
        for one in jobs:
            skewed.open_gate(one.id)
        assert skewed.check_whole(calm, steps=STEPS).attempt == 1
        assert skewed.check_whole(job, steps=STEPS).attempt == 2
    finally:
        skewed.thaw(pids)
    skewed.wait_ready(2)


def test_ticks_are_not_doubled(skewed: Arena) -> None:
    """Both controllers work, and no number is carried out twice."""
    done: dict[str, list[str]] = {}

    def both_work() -> bool:
        for name in ("control-1", "control-2"):
            done[name] = [
                f"{line.count('reap')} {found[1]}"
                for line in skewed.log(name).read_text().splitlines()
                if (found := NUMBER.search(line)) and "'release_all'" in line
            ]
        return all(done.values()) and sum(map(len, done.values())) > 5

    until(both_work, within_s=WAIT_S, what="both controllers carry out ticks")
    numbers = [number for name in done for number in done[name]]
    assert len(numbers) == len(set(numbers))
    for name in ("beat-control-1", "beat-control-2"):
        log = skewed.log(name).read_text()
        assert "Sending due task" in log
        assert "Traceback" not in log
