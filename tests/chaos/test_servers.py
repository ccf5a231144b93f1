"""The servers die, forget or fall silent under load: no job is lost or doubled, no healthy one reaped."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from callsheet import VideoJob
from callsheet.errors import Unreachable
from callsheet.tasks.ticket import attempt
from tests.support.crowd import Crowd
from tests.support.live import until
from tests.support.theatre import WAIT_S, Theatre
from tests.support.valkey import Valkey

pytestmark = [pytest.mark.torch, pytest.mark.chaos]

LONG = int(os.environ.get("ROUNDS", "3")) > 5
AWAY_S = [2.0, 6.0, 30.0] if LONG else [2.0, 6.0]
CONNECT_S = 1.0
TOLD_S = 1.5 * CONNECT_S + 0.5  # promised by the store, and what a busy machine adds


@dataclass(frozen=True)
class Servers:
    """Two servers, one for each kind of data."""

    store: Valkey
    broker: Valkey


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """The store loses nothing when it is killed."""
    with Valkey("--appendfsync", "always", aof=True) as store, Valkey() as broker:
        yield Servers(store, broker)


@pytest.fixture(scope="module")
def theatre(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory, tiny_models: Path
) -> Iterator[Theatre]:
    """Two A100s over both servers."""
    with Theatre(
        tmp_path_factory.mktemp("servers"),
        servers.broker,
        store_url=servers.store.url,
        models_dir=tiny_models,
        pace_s=0.05,
        connect_timeout_s=CONNECT_S,
    ) as stage:
        stage.open("a100-0", "a100-1")
        yield stage


def refused(theatre: Theatre, key: str) -> float:
    """A submit while the store is away. Answers after how many seconds its caller was told."""
    began = time.monotonic()
    with pytest.raises(Unreachable):
        theatre.submit(idempotency_key=key, seed=0)
    took_s = time.monotonic() - began
    assert took_s < TOLD_S
    return took_s


def repeated(theatre: Theatre, key: str) -> VideoJob:
    """The same submit again, twice: one job, whether or not the first try came through."""
    jobs = [theatre.submit(idempotency_key=key, seed=0) for _ in range(2)]
    assert jobs[0].id == jobs[1].id
    return jobs[0]


WIPE = """
local messages = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  if redis.call('TYPE', key).ok == 'list' then
    for _, message in ipairs(redis.call('LRANGE', key, 0, -1)) do messages[#messages + 1] = message end
  end
end
redis.call('FLUSHALL')
return messages
"""


def wiped(broker: Valkey) -> dict[str, int]:
    """Forget all that it holds, in one stroke. Answers the jobs whose tickets waited, with their numbers."""
    with broker.client() as client:
        headers = [json.loads(message)["headers"] for message in client.eval(WIPE, 0)]
    ids = [str(header["id"]).rpartition(".") for header in headers if header["task"] == attempt.name]
    return {job_id: int(number) for job_id, _, number in ids}


@pytest.mark.parametrize("fsync", ["always", "everysec"])
def test_a_store_that_is_killed_comes_back_with_every_job(
    theatre: Theatre, servers: Servers, fsync: str
) -> None:
    with servers.store.client() as client:
        client.config_set("appendfsync", fsync)
    crowd = Crowd(theatre)
    crowd.wait_under_load(age_s=1.1 if fsync == "everysec" else 0.0)
    before, began = crowd.ended(), time.monotonic()
    servers.store.kill9()
    told_s = refused(theatre, f"killed-{fsync}")
    servers.store.start()
    away_s = time.monotonic() - began
    on_s = crowd.time_until_next_end(before)
    crowd.add(repeated(theatre, f"killed-{fsync}"), 0)
    crowd.check()
    print(f"\nkilled ({fsync}): away {away_s:.1f} s, told in {told_s:.1f} s, next end {on_s:.1f} s later")


@pytest.mark.parametrize("silent_s", AWAY_S)
def test_a_store_that_falls_silent_costs_no_healthy_job_its_attempt(
    theatre: Theatre, servers: Servers, silent_s: float
) -> None:
    crowd = Crowd(theatre)
    crowd.wait_under_load()
    before, key, began = crowd.ended(), f"silent-{silent_s}", time.monotonic()
    assert servers.store.process is not None
    servers.store.process.send_signal(signal.SIGSTOP)
    try:
        told_s = refused(theatre, key)
        until(lambda: time.monotonic() - began > silent_s, within_s=silent_s + 5)
    finally:
        servers.store.process.send_signal(signal.SIGCONT)
    on_s = crowd.time_until_next_end(before)
    crowd.add(repeated(theatre, key), 0)
    crowd.check()
    print(f"\nsilent for {silent_s:.0f} s: told in {told_s:.1f} s, next end {on_s:.1f} s later")


def test_a_broker_that_forgets_everything_costs_only_tickets(theatre: Theatre, servers: Servers) -> None:
    crowd = Crowd(theatre)
    crowd.wait_under_load()
    lost = until(lambda: wiped(servers.broker), within_s=WAIT_S, what="tickets to lose")
    before = crowd.ended()
    on_s = crowd.time_until_next_end(before)
    renewed = {record.id for record in crowd.check() if record.ticket > lost.get(record.id, record.ticket)}
    assert renewed == lost.keys()
    print(f"\nbroker wiped: {len(lost)} tickets were lost, next end {on_s:.1f} s later")
