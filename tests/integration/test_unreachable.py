"""Redis that cannot be reached: the caller is told within seconds, and what was recorded is not lost."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from callsheet import VideoJob, generate_video
from callsheet.app import app
from callsheet.client import Client
from callsheet.errors import Unreachable
from callsheet.records.states import State
from callsheet.settings import Settings
from callsheet.store import open_store
from tests.support.live import Live, until
from tests.support.quick_worker import serve, start_quick
from tests.support.valkey import Valkey, free_port

WAIT_S = 60.0
TOLD_S = 5.0  # promised
CAT = {"prompt": "a cat", "model": "tiny-wan", "steps": 2}


def closed(_stack: ExitStack) -> int:
    """A port where nobody listens."""
    return free_port()


def silent(stack: ExitStack) -> int:
    """A port that accepts and never answers."""
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=50))
    return int(listener.getsockname()[1])


def black_hole(stack: ExitStack) -> int:
    """A port that does not even accept, as a firewall that drops packets: its backlog is full."""
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
    place = listener.getsockname()
    for _ in range(4):
        filler = stack.enter_context(socket.socket())
        filler.setblocking(False)
        filler.connect_ex(place)
    return int(place[1])


@pytest.fixture(params=[closed, silent, black_hole], ids=lambda kind: kind.__name__)
def dead_url(request: pytest.FixtureRequest) -> Iterator[str]:
    kind: Callable[[ExitStack], int] = request.param
    with ExitStack() as stack:
        yield f"redis://127.0.0.1:{kind(stack)}/0"


def test_a_submit_is_told_within_seconds(dead_url: str, tmp_path: Path) -> None:
    app.use(Settings(data_dir=tmp_path, broker_url=dead_url))
    began = time.monotonic()
    with pytest.raises(Unreachable, match="does not answer"):
        generate_video.delay(**CAT)
    assert time.monotonic() - began < TOLD_S


@pytest.mark.parametrize(
    "ask",
    [
        lambda: generate_video.apply_async(kwargs=CAT, countdown=5),  # needs the store's time
        lambda: generate_video.AsyncResult("some-job").status,
        lambda: generate_video.AsyncResult("some-job").get(timeout=30),
        lambda: generate_video.AsyncResult("some-job").state,
    ],
)
def test_so_is_whoever_asks(ask: Callable[[], Any], tmp_path: Path) -> None:
    app.use(Settings(data_dir=tmp_path, broker_url=f"redis://127.0.0.1:{free_port()}/0", connect_timeout_s=1))
    began = time.monotonic()
    with pytest.raises(Unreachable, match="does not answer"):
        ask()
    assert time.monotonic() - began < TOLD_S


def test_a_dead_broker_holds_nobody_up_for_long(dead_url: str, tmp_path: Path, valkey_url: str) -> None:
    app.use(Settings(data_dir=tmp_path, broker_url=dead_url, store_url=valkey_url))
    serve(open_store(valkey_url, retention_s=600))
    began = time.monotonic()
    job = generate_video.delay(**CAT)
    assert time.monotonic() - began < TOLD_S
    assert job.status == "queued"
    began = time.monotonic()
    with pytest.raises(Unreachable, match="the broker"):
        Client().ping_broker()
    assert time.monotonic() - began < TOLD_S


def test_what_was_recorded_while_the_broker_was_down_ends(tmp_path: Path) -> None:
    with Valkey() as store, Valkey() as broker, Live(tmp_path, broker, store_url=store.url) as live:
        app.use(live.settings)
        serve(live.store)
        broker.stop()
        job = generate_video.delay(**CAT)
        assert isinstance(job, VideoJob)
        assert live.store.get(job.id).state is State.QUEUED
        broker.start()
        start_quick(live)
        live.controller()
        assert job.get(timeout=WAIT_S)["film"] == "memory://film.mp4"
        kinds = [event.kind for event in live.store.events(job.id)]
        assert "healed" in kinds
        assert live.store.get(job.id).ticket == 2
        until(lambda: not live.store.undelivered(), within_s=WAIT_S)


def test_both_servers_may_go_while_a_caller_waits(tmp_path: Path) -> None:
    with Valkey(aof=True) as valkey, Live(tmp_path, valkey) as live:
        app.use(live.settings)
        serve(live.store)
        job = generate_video.delay(**CAT)
        start_quick(live)
        valkey.restart()
        assert job.get(timeout=WAIT_S)["film"] == "memory://film.mp4"
