"""Store, broker and results through Sentinels, before and after they promoted the replica."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from callsheet import generate_video
from callsheet.app import app
from callsheet.client import Client
from callsheet.errors import Unreachable
from callsheet.store.protocol import Store
from callsheet.store.server import SentinelFacts, look
from tests.support.jobs import new_job, op
from tests.support.live import Live, until
from tests.support.quick_worker import serve, start_quick
from tests.support.sentinel import QUORUM, SentinelTrio

CAT = {"prompt": "a cat", "model": "tiny-wan", "steps": 2}
WAIT_S = 30.0


@pytest.fixture
def trio() -> Iterator[SentinelTrio]:
    with SentinelTrio() as found:
        yield found


def insist(store: Store) -> tuple[str, bool | None]:
    """Submit one job, again with the same op and id while the store is away; answers (id, replicated)."""
    job, token = new_job(), op()
    ends = time.monotonic() + WAIT_S
    while True:
        try:
            return job.id, store.submit(job, op=token).replicated
        except Unreachable:
            assert time.monotonic() < ends, "the store did not come back"


def test_a_fail_over_loses_nothing_that_was_confirmed_and_work_goes_on(
    trio: SentinelTrio, tmp_path: Path
) -> None:
    with Live(tmp_path, trio.primary, broker_url=trio.url()) as live:
        start_quick(live)
        app.use(live.settings)
        store = live.store
        serve(store)
        before = generate_video.delay(**CAT)
        assert before.get(timeout=WAIT_S)["film"] == "memory://film.mp4", live.tail("quick")
        app.backend.store_result("an-id", {"film": "f"}, "SUCCESS")
        with trio.primary.client() as client:
            assert client.exists("celery-task-meta-an-id")
        confirmed = [insist(store) for _ in range(50)]
        assert all(replicated for _, replicated in confirmed)
        seen = SentinelFacts(3, 3, QUORUM, f"127.0.0.1:{trio.primary.port}")
        facts = look(trio.url(), 3.0)
        assert (facts.role, facts.replicas, facts.sentinels) == ("primary", 1, seen)
        trio.kill_primary()
        late, _ = insist(store)
        trio.wait_promoted()
        assert all(store.get_many([job_id for job_id, _ in confirmed]))
        assert store.get(late).id == late
        serve(store)
        until(lambda: "Connected to" in live.log("quick").read_text(), within_s=WAIT_S)
        after = generate_video.delay(**CAT)
        assert after.get(timeout=WAIT_S)["film"] == "memory://film.mp4", live.tail("quick")
        app.backend.store_result("later", {"film": "g"}, "SUCCESS")
        assert app.backend.get_result("later") == {"film": "g"}
        assert Client().ping_broker() == trio.url()
