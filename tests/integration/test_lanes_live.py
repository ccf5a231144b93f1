"""Heavy models on a live fleet: workers load by order, serve warm lanes only, and move when the work does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from callsheet import VideoJob, generate_video
from callsheet.app import app
from callsheet.records.states import State
from callsheet.routing.queues import direct_queue
from tests.support.live import Live, until
from tests.support.valkey import Valkey

pytestmark = pytest.mark.torch

WAIT_S = 60.0
LANES = ("heavy-a", "heavy-b")

#: Two of them do not fit one A100 by their figures; what is really loaded is tiny.
ENTRY = """
["{name}"]
source = "{{models_dir}}/tiny-wan"
dtype = "float32"
weights_gb = 50.0
denoise_gb = 1.0
decode_gb = 2.0
min_vram_gib = 50
lane = true
step_s = 0.05
size = "64x64"
frames = 17
max_frames = 33
frame_stride = 4
fps = 8
max_fps = 30
steps = 8
max_steps = 100
guidance = 5.0
max_guidance = 20.0
license = "Apache-2.0"
"""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, tiny_models: Path) -> Iterator[Live]:
    """Two A100s and two heavy models."""
    folder = tmp_path_factory.mktemp("lanes")
    catalog = folder / "catalog.toml"
    catalog.write_text("".join(ENTRY.format(name=name) for name in (*LANES, "heavy-c")))
    settings = {"catalog": str(catalog), "models_dir": tiny_models, "load_gb_per_s": 100.0}
    with Valkey() as valkey, Live(folder, valkey, **settings) as live:
        live.controller()
        live.worker("a100-0", wait=False)
        live.worker("a100-1", wait=False)
        live.wait_for_gpu("a100-0@test")
        live.wait_for_gpu("a100-1@test")
        app.use(live.settings)
        yield live


def film(model: str, **changes: object) -> VideoJob:
    job = generate_video.delay(prompt="a cat", model=model, steps=4, **changes)
    assert isinstance(job, VideoJob)
    return job


def residents(live: Live) -> dict[str, set[str]]:
    return {gpu.name: set(gpu.resident) for gpu in live.store.gpus()}


def warm_only(live: Live) -> bool:
    return all(
        {queue.split(".", 2)[2] for queue in gpu.queues if queue.count(".") > 1} == set(gpu.resident)
        for gpu in live.store.gpus()
    )


def consumers_follow(live: Live) -> bool:
    """Whether every worker consumes what its GPU is listed with, beside its direct queue."""
    consumed = app.control.inspect(timeout=2.0).active_queues() or {}
    return all(
        {queue["name"] for queue in consumed.get(gpu.name, [])} == {direct_queue(gpu.name), *gpu.queues}
        for gpu in live.store.gpus()
    )


def test_each_lane_gets_a_gpu_of_its_own_and_workers_serve_what_they_have(live: Live) -> None:
    for lane in LANES:
        assert film(lane).get(timeout=WAIT_S)["model"] == lane
    settled = sorted((set(), {"heavy-a"}, {"heavy-b"})[1:], key=sorted)
    until(
        lambda: sorted(residents(live).values(), key=sorted) == settled, within_s=WAIT_S, what="a lane each"
    )

    until(lambda: warm_only(live), within_s=WAIT_S, what="warm lanes only")
    assert all("free.a100" in gpu.queues for gpu in live.store.gpus())  # small models everywhere


def test_a_pro_job_of_a_lane_that_nobody_has_takes_a_gpu_and_loads(live: Live) -> None:
    job = film("heavy-c", tier="pro")
    assert job.get(timeout=WAIT_S)["model"] == "heavy-c"
    until(lambda: "heavy-c" in set().union(*residents(live).values()), within_s=WAIT_S, what="its weights")


def test_an_idle_gpu_loads_by_order_before_the_free_job_comes(live: Live) -> None:
    until(lambda: warm_only(live), within_s=WAIT_S, what="warm lanes only")
    until(lambda: consumers_follow(live), within_s=WAIT_S, what="consumers as subscribed")
    missing = next(lane for lane in (*LANES, "heavy-c") if lane not in set().union(*residents(live).values()))
    job = film(missing)
    job.get(timeout=WAIT_S)
    record = live.store.get(job.id)
    assert record.state is State.SUCCEEDED
    assert record.gpu_s_loading < 0.1  # its weights were there when it was claimed
