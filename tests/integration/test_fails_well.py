"""What must fail well, through the whole of a live deployment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callsheet import VideoJob, generate_video
from callsheet.app import app
from callsheet.client import Client
from callsheet.errors import (
    IdempotencyConflict,
    JobFailed,
    NoGpuFits,
    RequestError,
)
from callsheet.settings import to_env
from tests.support.live import Live
from tests.support.valkey import Valkey

pytestmark = pytest.mark.torch

WAIT_S = 60.0
CAT = {"prompt": "a cat walks on the grass", "model": "tiny-wan", "steps": 4, "seed": 7}


def submit(**changes: Any) -> VideoJob:
    job = generate_video.delay(**{**CAT, **changes})
    assert isinstance(job, VideoJob)
    return job


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory, tiny_models: Path) -> Iterator[Live]:
    """A deployment whose models and storage these tests break: its own copies, one worker."""
    folder = tmp_path_factory.mktemp("fragile")
    shutil.copytree(tiny_models, folder / "models")
    limits = {"max_resident_models": 1, "storage_patience_s": 1.0}
    with Valkey() as valkey, Live(folder, valkey, models_dir=folder / "models", **limits) as live:
        live.controller()
        live.worker("a100-0", "a100")
        yield live


@pytest.fixture
def fragile_client(fragile: Live) -> Client:
    app.use(fragile.settings)
    return Client()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "wan9"}, "tiny-wan"),
        ({"size": "65x64"}, "64x64"),
        ({"prompt": "x" * 10_000}, "4000"),
        ({"frames": 0}, "frames"),
        ({"frames": -5}, "frames"),
        ({"guidance": float("nan")}, "guidance"),
        ({"prompt": "bell \x07"}, "control"),
        ({"tier": "gold"}, "pro"),
    ],
)
def test_a_bad_request_stores_and_publishes_nothing(
    client: Client, changes: dict[str, Any], said: str
) -> None:
    before = sum(client.counts().values())
    with pytest.raises(RequestError, match=said):
        submit(**changes)
    assert sum(client.counts().values()) == before


def test_every_fault_of_a_request_is_in_one_error(client: Client) -> None:
    with pytest.raises(RequestError) as caught:
        submit(size="65x64", frames=0, guidance=float("nan"), tier="gold", steps=0, frobnicate=1)
    for name in ("size", "frames", "guidance", "tier", "steps", "frobnicate"):
        assert name in str(caught.value)


def test_no_gpu_class_that_fits_says_which_is_needed(live: Live) -> None:
    app.use(live.settings.replace(gpu_classes=("l4",)))
    with pytest.raises(NoGpuFits, match=r"needs .* GiB.*(a100|h100|h200|l40s)"):
        generate_video.delay(prompt="a cat", model="hunyuanvideo")
    app.use(live.settings)


def test_200_submissions_in_parallel_with_one_key_make_one_job(client: Client) -> None:
    key, ids, faults = uuid.uuid4().hex, [], []
    gate = threading.Barrier(20)

    def work() -> None:
        gate.wait()
        for _ in range(10):
            try:
                ids.append(submit(idempotency_key=key).id)
            except Exception as fault:  # noqa: BLE001
                faults.append(fault)

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert len(ids) == 200
    assert len(set(ids)) == 1
    assert generate_video.AsyncResult(ids[0]).get(timeout=WAIT_S)
    assert client.get(ids[0]).attempt == 1
    with pytest.raises(IdempotencyConflict):
        submit(idempotency_key=key, prompt="another")


def test_a_truncated_model_fails_the_job_and_the_worker_lives_on(
    fragile_client: Client, fragile: Live
) -> None:
    weights = next((fragile.folder / "models" / "tiny-ltx" / "transformer").glob("*.safetensors"))
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-100])
    with pytest.raises(JobFailed, match=str(weights)):
        submit(model="tiny-ltx").get(timeout=WAIT_S)
    weights.write_bytes(whole)
    assert submit(model="tiny-ltx").get(timeout=WAIT_S)


def test_a_missing_model_folder_says_what_to_do(fragile_client: Client, fragile: Live) -> None:
    folder = fragile.folder / "models" / "tiny-wan"
    submit(model="tiny-ltx").get(timeout=WAIT_S)  # so that tiny-wan is not resident
    folder.rename(folder.with_name("moved"))
    with pytest.raises(JobFailed, match="build-tiny") as caught:
        submit().get(timeout=WAIT_S)
    assert str(folder) in str(caught.value)
    folder.with_name("moved").rename(folder)
    assert submit().get(timeout=WAIT_S)


def test_storage_that_is_not_writable_fails_the_job_and_leaves_nothing(
    fragile_client: Client, fragile: Live
) -> None:
    films = fragile.folder / "films"
    shutil.rmtree(films, ignore_errors=True)
    films.write_text("a file where the folder should be")
    job = submit()
    with pytest.raises(JobFailed, match="films"):
        job.get(timeout=WAIT_S)
    assert fragile_client.get(job.id).error_type == "StorageError"
    films.unlink()
    assert submit().get(timeout=WAIT_S)
    assert not [path for path in films.rglob("*") if path.is_file() and not path.name.startswith("film.")]


def test_a_worker_without_a_gpu_says_what_to_set(fragile: Live) -> None:
    env = {**os.environ, **to_env(fragile.settings)}
    env.pop("CALLSHEET_GPUS", None)
    ended = subprocess.run(
        [sys.executable, "-m", "callsheet", "worker"], env=env, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 2
    assert "CALLSHEET_GPUS" in ended.stderr
    assert "Traceback" not in ended.stderr
