"""What a newer version wrote into Redis: this one reads what it knows, and leaves alone what it does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from callsheet.records.gpus import GpuOrder
from callsheet.records.jobs import CHECKPOINT_FORMAT, Ticket
from callsheet.records.states import State
from callsheet.store.keys import Keys
from callsheet.store.protocol import ClaimRefused
from callsheet.store.redis_store import RedisStore
from tests.support.jobs import (
    GPU,
    QUEUE,
    checkpoint,
    claimed,
    finish,
    keep,
    op,
    queued,
    renew,
    running,
)
from tests.support.valkey import Valkey


@pytest.fixture
def raw(valkey: Valkey) -> Any:
    """A plain client of the same server."""
    return valkey.client()


def widen(raw: Any, key: str, field: str) -> None:
    """One more entry in a JSON field of a hash."""
    known = json.loads(raw.hget(key, field))
    raw.hset(key, field, json.dumps({**known, "novelty": [1]}))


def test_a_record_with_more_in_it_runs_to_its_end(redis_store: RedisStore, raw: Any, prefix: str) -> None:
    """Fields that a newer version added within this format."""
    keys = Keys(prefix)
    ticket = queued(redis_store, "film")
    raw.hset(keys.job("film"), "novelty", "x")
    widen(raw, keys.job("film"), "request")
    lease = claimed(redis_store, ticket)
    assert lease.job.request.seed == 7
    assert renew(redis_store, lease) == ""
    keep(redis_store, lease, step=4)
    redis_store.hand_back("film", 1, lease.token, reason="", op=op())
    lease = claimed(redis_store, redis_store.release(QUEUE, op=op())[0])
    assert finish(redis_store, lease)
    assert redis_store.get("film").state is State.SUCCEEDED
    assert raw.hget(keys.job("film"), "novelty") == "x"
    assert json.loads(raw.hget(keys.job("film"), "request"))["novelty"] == [1]


def test_a_checkpoint_with_more_in_it_is_read(redis_store: RedisStore, raw: Any, prefix: str) -> None:
    keys = Keys(prefix)
    lease = running(redis_store, "film")
    for step in (2, 4):
        keep(redis_store, lease, step=step)
    for name in ("checkpoint", "checkpoint_before"):
        widen(raw, keys.job("film"), name)
    job = redis_store.get("film")
    assert (job.checkpoint, job.checkpoint_before) == (checkpoint(4), checkpoint(2))
    assert [found.id for found in redis_store.running()] == ["film"]
    assert keep(redis_store, lease, step=6) == [checkpoint(2)]


def test_a_job_whose_checkpoint_is_newer_is_left(redis_store: RedisStore, raw: Any, prefix: str) -> None:
    """A newer worker kept steps that this one cannot read, then was preempted."""
    keys = Keys(prefix)
    lease = running(redis_store, "film")
    keep(redis_store, lease, step=4)
    newer = {"checkpoint_format": str(CHECKPOINT_FORMAT + 1)}
    raw.hset(keys.job("film"), mapping=newer)
    redis_store.hand_back("film", 1, lease.token, reason="", op=op())
    (ticket,) = redis_store.release(QUEUE, op=op())
    before = raw.hgetall(keys.job("film"))
    answer = redis_store.claim(ticket, worker="w", token=op(), lease_s=5)
    assert answer == ClaimRefused("unknown-format")
    assert raw.hgetall(keys.job("film")) == before | {"home": f"passed.{QUEUE}"}
    assert redis_store.published_jobs(QUEUE) == []
    raw.hset(keys.job("film"), "checkpoint_format", str(CHECKPOINT_FORMAT))
    assert claimed(redis_store, ticket).attempt == 2


@pytest.mark.parametrize("how", ["released", "assigned"])
def test_a_ticket_carries_the_format_of_its_record(
    redis_store: RedisStore, raw: Any, prefix: str, how: str
) -> None:
    """Whoever releases it: an old one also releases what is newer, for whom it may concern."""
    queued(redis_store, "film")
    redis_store.heal(QUEUE, older_s=0, op=op())
    raw.hset(Keys(prefix).job("film"), "format", "2")
    ways: dict[str, Callable[[], Ticket | None]] = {
        "released": lambda: redis_store.release(QUEUE, op=op())[0],
        "assigned": lambda: redis_store.assign("film", "direct.w", reason="", op=op()),
    }
    ticket = ways[how]()
    assert ticket is not None
    assert (ticket.job_id, ticket.number, ticket.format) == ("film", 2, 2)


def test_rows_gpus_and_orders_with_more_in_them_are_read(
    redis_store: RedisStore, raw: Any, prefix: str
) -> None:
    keys = Keys(prefix)
    lease = running(redis_store, "film")
    redis_store.hand_back("film", 1, lease.token, reason="yields", op=op())
    widen(raw, keys.attempts("film"), "1")
    assert redis_store.attempts("film")[0].reason == "yields"
    redis_store.beat_gpu(GPU, ttl_s=60)
    raw.hset(keys.gpu(GPU.name), "novelty", "x")
    assert [gpu.name for gpu in redis_store.gpus()] == [GPU.name]
    redis_store.order_gpu("g", GpuOrder("cordoned", "ann", "fan"), op=op())
    raw.hset(keys.gpu_order("g"), "novelty", "x")
    order = redis_store.gpu_order("g")
    assert order is not None
    assert order.who == "ann"
