"""One attempt on a real tiny pipeline and real storage, in memory otherwise: how it ends in each case."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callsheet.artifacts.objects import open_objects
from callsheet.catalog import Catalog, load_catalog
from callsheet.errors import Unreachable
from callsheet.records.jobs import Job, Ticket
from callsheet.records.states import State
from callsheet.settings import Settings
from callsheet.store.memory import MemoryStore
from callsheet.store.protocol import Lease
from callsheet.workers import insist, perform
from callsheet.workers.journal import StoreJournal
from callsheet.workers.perform import Performer
from callsheet.workers.resident import ResidentModels
from tests.support.clock import Clock
from tests.support.jobs import op, queued, reap
from tests.support.live import until
from tests.support.tiny import tiny_folder

pytestmark = pytest.mark.torch


class Recording(StoreJournal):
    """A journal that remembers, and does something at a step before the order is read."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store, lease_s=3.0)
        self.leases: list[Lease] = []
        self.phases: list[str] = []
        self.ended: list[tuple[str, ...]] = []
        self.at: dict[int, Callable[[], object]] = {}

    def begin(self, lease: Lease) -> None:
        self.leases.append(lease)
        super().begin(lease)

    def step(self, done: int, total: int, step_s: float = 0.0) -> None:
        self.at.pop(done, lambda: None)()
        super().step(done, total, step_s)

    def phase(self, name: str) -> None:
        self.phases.append(name)
        super().phase(name)

    def end(self, resident: tuple[str, ...]) -> None:
        self.ended.append(resident)
        super().end(resident)


class Stage:
    """A performer over a memory store and a folder."""

    def __init__(self, folder: Path, models: Path, storage_url: str = "", **settings: Any) -> None:
        self.clock = Clock()
        self.store = MemoryStore(self.clock)
        self.films = folder / "films"
        self.objects = open_objects(storage_url or f"file://{self.films}")
        self.catalog: Catalog = load_catalog("", models)
        self.journal = Recording(self.store)
        self.performer = Performer(
            store=self.store,
            objects=lambda: self.objects,
            catalog=self.catalog,
            settings=Settings(data_dir=folder, storage_patience_s=0.0, **settings),
            resident=ResidentModels(2),
            journal=self.journal,
            worker="h100-0@test",
        )

    def job(self, **changes: Any) -> Ticket:
        return queued(self.store, **{"steps": 4, "frames": 5, **changes})

    def run(self, ticket: Ticket) -> tuple[State | str, Job]:
        return self.performer.perform(ticket), self.store.get(ticket.job_id)

    def files(self) -> list[str]:
        return sorted(key.rpartition("/")[2] for key in self.objects.list())


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder of this test's own with the tiny Wan model."""
    shutil.copytree(tiny_folder("tiny-wan"), tmp_path / "models" / "tiny-wan")
    return tmp_path / "models"


@pytest.fixture
def stage(tmp_path: Path, models: Path) -> Stage:
    return Stage(tmp_path, models)


def test_a_film_and_its_manifest_are_stored_and_recorded(stage: Stage) -> None:
    state, job = stage.run(stage.job())
    assert state is job.state is State.SUCCEEDED
    assert stage.files() == ["film.json", "film.mp4"]
    manifest = json.loads(Path(job.manifest.removeprefix("file://")).read_text())
    assert manifest["frames_sha256"] == job.frames_sha256
    assert manifest["timings"]["claim_to_first_step_s"] > 0
    assert job.gpu_s_loading > 0
    assert job.gpu_s_useful > 0


def test_a_second_job_finds_the_model_loaded(stage: Stage) -> None:
    stage.run(stage.job())
    _, second = stage.run(stage.job())
    assert second.gpu_s_loading < 0.05


def test_a_ticket_without_meaning_touches_nothing(stage: Stage) -> None:
    ticket = stage.job()
    state, _ = stage.run(Ticket(ticket.job_id, ticket.number + 1, ticket.queue))
    assert state == "stale-ticket"
    assert stage.run(ticket)[0] is State.SUCCEEDED
    assert stage.run(ticket)[0] == "not-queued"  # redelivered
    assert stage.files() == ["film.json", "film.mp4"]


def test_a_cancelled_job_stops_at_its_step_and_stores_nothing(stage: Stage) -> None:
    ticket = stage.job(steps=50)
    stage.journal.at[2] = lambda: stage.store.cancel(ticket.job_id, reason="test", op=op())
    state, job = stage.run(ticket)
    assert state is job.state is State.CANCELLED
    assert job.step <= 2
    assert stage.files() == []


def test_a_job_that_yields_goes_back_and_gives_the_same_film_later(stage: Stage) -> None:
    whole = stage.run(stage.job())[1].frames_sha256
    ticket = stage.job()
    stage.journal.at[2] = lambda: stage.store.order(ticket.job_id, 1, "yield", reason="test", op=op())
    state, job = stage.run(ticket)
    assert state is job.state is State.PENDING
    assert (job.preemptions, job.crashes) == (1, 0)
    assert (job.step, job.checkpoint is not None) == (2, True)
    assert job.gpu_s_useful > 0
    (again,) = stage.store.release(ticket.queue, op=op())
    _, resumed = stage.run(again)
    assert resumed.frames_sha256 == whole
    assert (resumed.from_step, resumed.exact, resumed.restarts) == (2, True, 0)
    until(lambda: stage.files() == ["film.json", "film.json", "film.mp4", "film.mp4"])


def test_a_ghost_writes_nothing_into_the_record(stage: Stage) -> None:
    ticket = stage.job()

    def lose() -> None:
        stage.clock.advance(10)
        reap(stage.store, max_crashes=3)

    stage.journal.at[3] = lose
    state, job = stage.run(ticket)
    assert state == "fenced"
    assert job.state is State.PENDING
    assert job.film == ""


def test_a_missing_model_fails_the_job_with_path_and_next_step(stage: Stage, models: Path) -> None:
    shutil.rmtree(models / "tiny-wan")
    state, job = stage.run(stage.job())
    assert state is job.state is State.FAILED
    assert job.error_type == "ModelError"
    assert str(models / "tiny-wan") in job.error
    assert "build-tiny" in job.error


def test_a_truncated_model_fails_the_job_and_the_next_one_is_made(stage: Stage, models: Path) -> None:
    weights = next((models / "tiny-wan" / "transformer").glob("*.safetensors"))
    data = weights.read_bytes()
    weights.write_bytes(data[: len(data) // 2])
    _, job = stage.run(stage.job())
    assert job.state is State.FAILED
    assert str(weights) in job.error
    weights.write_bytes(data)
    assert stage.run(stage.job())[0] is State.SUCCEEDED


def test_storage_that_cannot_be_written_fails_the_job_and_leaves_nothing(
    tmp_path: Path, models: Path
) -> None:
    (tmp_path / "no-folder").write_text("a file where the folder should be")
    stage = Stage(tmp_path, models, f"file://{tmp_path}/no-folder/films")
    state, job = stage.run(stage.job())
    assert state is job.state is State.FAILED
    assert job.error_type == "StorageError"
    assert "no-folder" in job.error
    assert job.film == ""


def test_a_bug_fails_the_job_and_not_the_worker(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(perform, "frames_sha256", broken)
    _, job = stage.run(stage.job())
    assert (job.state, job.error_type) == (State.FAILED, "ZeroDivisionError")
    monkeypatch.undo()
    assert stage.run(stage.job())[0] is State.SUCCEEDED


def test_a_finished_film_waits_for_a_store_that_is_away(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []
    finish = stage.store.finish

    def flaky(*args: Any, op: str, **kwargs: Any) -> bool:
        tries.append(op)
        if len(tries) < 3:
            raise Unreachable("away")
        return finish(*args, op=op, **kwargs)

    monkeypatch.setattr(stage.store, "finish", flaky)
    monkeypatch.setattr(insist, "PAUSE_S", 0.0)
    assert stage.run(stage.job())[0] is State.SUCCEEDED
    assert len(tries) == 3
    assert len(set(tries)) == 1  # one op: a lost reply changes nothing


def test_the_phases_are_told_in_order(stage: Stage) -> None:
    stage.run(stage.job())
    assert stage.journal.phases == ["load", "encode", "denoise", "decode", "store"]


def test_the_journal_is_closed_however_it_ends(stage: Stage, models: Path) -> None:
    stage.run(stage.job())
    shutil.rmtree(models / "tiny-wan")
    stage.performer._resident.clear()
    stage.run(stage.job())
    assert stage.journal.ended == [("tiny-wan",), ()]


def test_a_lease_is_what_the_claim_gave(stage: Stage) -> None:
    stage.run(stage.job())
    (lease,) = stage.journal.leases
    assert (lease.attempt, lease.job.state, lease.job.worker) == (1, State.RUNNING, "h100-0@test")
