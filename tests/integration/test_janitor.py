"""The janitor against real servers: reply queues on Valkey, and the Redis store with files."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import redis
from celery import Celery

from callsheet.artifacts.objects import open_objects
from callsheet.beat.janitor import Tools, sweep_checkpoints, sweep_erased, sweep_records
from callsheet.beat.pidbox import BINDINGS, CURSOR, EXCHANGE, ORPHAN_S, SEEN, sweep_pidbox
from callsheet.settings import Settings
from callsheet.store.memory import MemoryStore
from callsheet.store.redis_store import RedisStore
from tests.support.jobs import ended
from tests.support.sweeping import Kit, check_sweeps
from tests.support.valkey import Valkey

DAY = 86_400.0
ASK = "import sys; from celery import Celery; Celery(broker=sys.argv[1]).control.inspect(timeout=120).ping()"


@pytest.fixture(scope="module")
def valkey() -> Iterator[Valkey]:
    with Valkey() as server:
        yield server


@pytest.fixture
def client(valkey: Valkey) -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(valkey.url)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def tools(client: redis.Redis, tmp_path: Path) -> Tools:
    return Kit(MemoryStore(), Settings(), lambda: open_objects(tmp_path.as_uri()), lambda: client)


class Worker:
    """The remote control of a Celery worker, without the worker; ``before_reply`` runs before it answers."""

    def __init__(self, url: str) -> None:
        self.app = Celery(broker=url)
        self.before_reply: Callable[[], object] = lambda: None
        self.answered = 0
        self.connection = self.app.connection()
        node = self.app.control.mailbox.Node("w@here", handlers={"ping": self.ping}, channel=self.connection)
        self.consumer = node.listen()
        self.drain(0.05)

    def ping(self, state: Any = None, **_: Any) -> dict[str, str]:
        self.before_reply()
        self.answered += 1
        return {"ok": "pong"}

    def drain(self, timeout_s: float) -> None:
        try:
            self.connection.drain_events(timeout=timeout_s)
        except TimeoutError:
            return

    def answer(self) -> None:
        """Answer the next question."""
        asked, until = self.answered, time.monotonic() + 30
        while self.answered == asked and time.monotonic() < until:
            self.drain(0.2)
        assert self.answered == asked + 1


@pytest.fixture
def worker(valkey: Valkey, client: redis.Redis) -> Iterator[Worker]:
    worker = Worker(valkey.url)
    yield worker
    worker.connection.close()


def dead_asker(valkey: Valkey, worker: Worker) -> None:
    """Somebody asks the workers and is killed before the answer comes."""
    asker = subprocess.Popen([sys.executable, "-c", ASK, valkey.url])

    def kill() -> None:
        asker.kill()
        asker.wait(10)

    worker.before_reply = kill
    try:
        worker.answer()
    finally:
        worker.before_reply = lambda: None
        kill()


def reply_lists(client: redis.Redis) -> list[bytes]:
    return list(client.scan_iter(match=f"*.{EXCHANGE}", _type="list"))


def test_what_a_dead_asker_leaves_goes_after_an_hour_of_silence(
    valkey: Valkey, client: redis.Redis, worker: Worker, tools: Tools
) -> None:
    dead_asker(valkey, worker)
    (orphan,) = reply_lists(client)
    assert client.ttl(orphan) == -1  # else kombu cares for it, and this sweep has no work
    assert client.scard(BINDINGS) == 1
    assert sweep_pidbox(tools) == 0
    unused_for(client, orphan, ORPHAN_S - 60)
    assert sweep_pidbox(tools) == 0
    unused_for(client, orphan, ORPHAN_S + 1)
    assert sweep_pidbox(tools) == 1
    assert reply_lists(client) == []
    assert client.scard(BINDINGS) == 0


def test_a_binding_without_a_list_goes_when_it_was_seen_so_for_an_hour(
    valkey: Valkey, client: redis.Redis, worker: Worker, tools: Tools
) -> None:
    dead_asker(valkey, worker)
    (orphan,) = reply_lists(client)
    client.delete(orphan)
    assert sweep_pidbox(tools) == 0
    assert 0 < client.ttl(SEEN) <= 600
    assert 0 < client.ttl(CURSOR) <= 600
    first_seen(client, orphan, ORPHAN_S - 60)
    assert sweep_pidbox(tools) == 0
    first_seen(client, orphan, ORPHAN_S + 1)
    assert sweep_pidbox(tools) == 1
    assert client.scard(BINDINGS) == 0
    assert not client.exists(SEEN)


def test_a_living_asker_gets_its_answer_through_all_sweeps(
    valkey: Valkey, client: redis.Redis, worker: Worker, tools: Tools
) -> None:
    dead_asker(valkey, worker)
    (orphan,) = reply_lists(client)
    unused_for(client, orphan, ORPHAN_S + 1)
    swept: list[int] = []
    worker.before_reply = lambda: swept.extend(sweep_pidbox(tools) for _ in range(3))
    replies: list[Any] = []
    inspect = worker.app.control.inspect(timeout=20, limit=1)
    asker = Thread(target=lambda: replies.append(inspect.ping()))
    asker.start()
    worker.answer()
    asker.join(25)
    assert replies == [{"w@here": {"ok": "pong"}}]
    assert swept == [1, 0, 0]


def test_other_keys_are_nobodys_business(client: redis.Redis, tools: Tools) -> None:
    client.rpush("free.h100", "ticket")
    client.rpush("celery.pidbox", "x")
    client.set(f"result.{EXCHANGE}", "not a list")
    for key in ("free.h100", "celery.pidbox"):
        unused_for(client, key.encode(), 10 * ORPHAN_S)
    assert sweep_pidbox(tools) == 0
    assert client.dbsize() == 4  # and the cursor


def test_many_keys_take_several_runs(client: redis.Redis, tools: Tools) -> None:
    client.mset({f"celery-task-meta-{number}": "x" for number in range(12_000)})
    client.rpush(f"gone.{EXCHANGE}", "late answer")
    unused_for(client, f"gone.{EXCHANGE}".encode(), ORPHAN_S + 1)
    assert sum(sweep_pidbox(tools) for _ in range(3)) == 1


def unused_for(client: redis.Redis, key: bytes, seconds: int) -> None:
    """As if nobody had touched the key for so long."""
    run: Any = client.execute_command  # annotated in some versions of redis-py only
    run("RESTORE", key, 0, client.dump(key), "REPLACE", "IDLETIME", seconds)


def first_seen(client: redis.Redis, queue: bytes, ago_s: int) -> None:
    client.hset(SEEN, queue.decode(), str(client.time()[0] - ago_s))


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_objects_of_a_redis_store_in_real_places(
    valkey: Valkey, client: redis.Redis, tmp_path: Path, scheme: str
) -> None:
    url = tmp_path.as_uri() if scheme == "file" else f"memory://{tmp_path.name}"
    store = RedisStore(valkey.client(), retention_s=DAY)
    check_sweeps(Kit(store, Settings(), lambda: open_objects(url), lambda: client))
    store.close()


def test_old_records_leave_the_indexes_by_themselves(valkey: Valkey, client: redis.Redis) -> None:
    store = RedisStore(valkey.client(), retention_s=0.2)
    kit = Kit(store, Settings(), lambda: open_objects("memory://"), lambda: client)
    ended(store)
    assert sweep_records(kit) == 1
    until = time.monotonic() + 10
    while sweep_records(kit) and time.monotonic() < until:
        time.sleep(0.05)
    assert sweep_records(kit) == 0
    assert sweep_checkpoints(kit) == sweep_erased(kit) == 0
    store.close()
