"""A worker outlives a broker that is away, however long, and goes on by itself."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from callsheet import generate_video
from callsheet.app import app
from tests.support.live import Live, until
from tests.support.quick_worker import serve, start_quick
from tests.support.valkey import Valkey

CAT = {"prompt": "a cat", "model": "tiny-wan", "steps": 2}
WAIT_S = 40.0


@pytest.mark.parametrize(("how", "away_s"), [("stopped", 8.0), ("frozen", 4.0)])
def test_a_worker_outlives_its_broker(tmp_path: Path, how: str, away_s: float) -> None:
    with (
        Valkey() as broker,
        Valkey() as keeper,
        Live(tmp_path, broker, broker_url=broker.url, store_url=keeper.url) as live,
    ):
        start_quick(live)
        app.use(live.settings)
        serve(live.store)
        assert generate_video.delay(**CAT).get(timeout=WAIT_S)
        away_for(broker, away_s, frozen=how == "frozen", live=live)
        serve(live.store)
        assert live.processes["quick"].poll() is None, live.tail("quick")
        assert generate_video.delay(**CAT).get(timeout=WAIT_S), live.tail("quick")


def away_for(broker: Valkey, away_s: float, *, frozen: bool, live: Live) -> None:
    """Take the broker away for so long, during which the worker must not end."""
    ends = time.monotonic() + away_s
    process = broker.process
    assert process is not None
    if frozen:
        os.kill(process.pid, signal.SIGSTOP)
    else:
        broker.stop()
    try:
        until(lambda: time.monotonic() > ends or live.processes["quick"].poll() is not None, within_s=60)
    finally:
        if frozen:
            os.kill(process.pid, signal.SIGCONT)
        else:
            broker.start()
