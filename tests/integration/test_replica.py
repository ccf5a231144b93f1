"""A submit and an end wait, for a short while, until a replica has them."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator

import pytest

from callsheet.store.connection import Connection, connect
from callsheet.store.redis_store import RedisStore
from tests.support.jobs import finish, new_job, op, running
from tests.support.replica import replica_of, wait_in_step
from tests.support.valkey import Valkey

WAIT_MS = 300.0


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Valkey, Valkey]]:
    with Valkey("--repl-diskless-sync-delay", "0") as primary, replica_of(primary) as replica:
        wait_in_step(primary)
        yield primary, replica


def open_at(server: Valkey, *, wait_ms: float = WAIT_MS) -> RedisStore:
    return RedisStore.from_url(server.url, retention_s=600, replica_wait_ms=wait_ms)


def state_at(server: Valkey, store: RedisStore, job_id: str) -> str | None:
    with server.client() as client:
        found: str | None = client.hget(store._keys.job(job_id), "state")
        return found


def paused(server: Valkey, signum: signal.Signals) -> None:
    assert server.process is not None
    os.kill(server.process.pid, signum)


def test_what_submit_and_finish_answered_is_at_the_replica(pair: tuple[Valkey, Valkey]) -> None:
    primary, replica = pair
    store = open_at(primary)
    job = new_job()
    assert store.submit(job, op=op()).replicated is True
    assert state_at(replica, store, job.id) == "pending"
    lease = running(store)
    assert finish(store, lease)
    assert state_at(replica, store, lease.job.id) == "succeeded"


def test_a_replica_that_lags_is_told_and_delays_by_the_bound_only(
    pair: tuple[Valkey, Valkey], caplog: pytest.LogCaptureFixture
) -> None:
    primary, replica = pair
    store = open_at(primary)
    job, token = new_job(), op()
    assert store.submit(new_job(), op=op()).replicated is True
    paused(replica, signal.SIGSTOP)
    try:
        began = time.monotonic()
        with caplog.at_level(logging.WARNING):
            first = store.submit(job, op=token)
            again = store.submit(job, op=token)  # writes nothing, and is no more replicated for that
        took_s = time.monotonic() - began
    finally:
        paused(replica, signal.SIGCONT)
    assert first.created
    assert (first.replicated, again.replicated) == (False, False)
    assert 2 * WAIT_MS / 1000 <= took_s < 2 * WAIT_MS / 1000 + 2
    assert caplog.text.count("a fail-over loses it") == 1  # not for every submit
    assert store.submit(job, op=token).replicated is True


def test_nobody_waits_without_a_replica_or_when_told_not_to(pair: tuple[Valkey, Valkey]) -> None:
    with Valkey() as alone:
        assert open_at(alone).submit(new_job(), op=op()).replicated is None
    primary, _ = pair
    assert open_at(primary, wait_ms=0).submit(new_job(), op=op()).replicated is None


def test_the_server_is_asked_for_replicas_rarely() -> None:
    with Valkey() as alone, alone.client() as client:
        store = open_at(alone)
        for _ in range(20):
            store.submit(new_job(), op=op())
        assert client.info("commandstats")["cmdstat_info"]["calls"] <= 3  # one of them: this one's own


def test_a_script_that_the_server_forgot_is_sent_again(pair: tuple[Valkey, Valkey]) -> None:
    primary, _ = pair
    store = open_at(primary)
    with primary.client() as client:
        client.script_flush()
    assert store.submit(new_job(), op=op()).replicated is True


def test_who_may_not_wait_submits_all_the_same(
    pair: tuple[Valkey, Valkey], caplog: pytest.LogCaptureFixture
) -> None:
    primary, _ = pair
    with primary.client() as client:
        client.acl_setuser(
            "few", enabled=True, passwords=["+pw"], keys=["*"], channels=["*"], commands=["+@all", "-wait"]
        )
        client.acl_setuser("blind", enabled=True, passwords=["+pw"], keys=["*"], commands=["+@all", "-info"])
    store = RedisStore.from_url(primary.url.replace("://", "://few:pw@"), retention_s=600)
    assert store.submit(new_job(), op=op()).replicated is False
    assert "wait" in caplog.text
    store = RedisStore.from_url(primary.url.replace("://", "://blind:pw@"), retention_s=600)
    assert store.submit(new_job(), op=op()).replicated is None


def test_waiting_never_comes_near_the_time_limit_of_an_answer() -> None:
    bound: Connection = connect("redis://127.0.0.1:1/0", 0.4, 1000)
    assert bound.wait_ms == 100
