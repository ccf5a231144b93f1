"""What lies in Redis: TTLs, indexes that do not grow, members without a record; retention in both stores."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import redis

from callsheet import errors
from callsheet.records.states import State
from callsheet.store.codec import stamp
from callsheet.store.keys import Keys
from callsheet.store.memory import MemoryStore
from callsheet.store.protocol import ClaimRefused, Store
from callsheet.store.redis_store import RedisStore
from tests.contract.conftest import RETENTION_S
from tests.support.clock import Clock
from tests.support.jobs import (
    FAILURE,
    GPU,
    QUEUE,
    claimed,
    ended,
    finish,
    new_job,
    op,
    queued,
    reap,
    running,
    submitted,
)
from tests.support.keys import check_keys
from tests.support.valkey import Valkey


@pytest.fixture
def raw(valkey: Valkey) -> Any:
    """A plain client of the same server."""
    return valkey.client()


def ttls(raw: Any, prefix: str, job_id: str, *more: str) -> list[int]:
    keys = Keys(prefix)
    own = [keys.job(job_id), keys.events(job_id), *more]
    return [raw.ttl(key) for key in own]


# -- TTLs


def test_a_job_and_all_that_is_its_own_live_on_for_the_retention(
    redis_store: RedisStore, raw: Any, prefix: str
) -> None:
    keys = Keys(prefix)
    lease = running(redis_store, "film", tenant="a:b", idempotency_key="k")
    redis_store.submit(new_job("twin", tenant="a:b", idempotency_key="k"), op=op(), alias=True)
    redis_store.mark_part("film", "film:result")
    own = [keys.aliases("film"), keys.delivered("film"), keys.alias("twin"), keys.idem("a:b", "k")]
    assert set(ttls(raw, prefix, "film", *own)) == {-1}
    assert finish(redis_store, lease)
    assert all(RETENTION_S - 5 < ttl <= RETENTION_S for ttl in ttls(raw, prefix, "film", *own))


def test_what_comes_after_the_end_goes_with_the_record(
    redis_store: RedisStore, raw: Any, prefix: str
) -> None:
    keys = Keys(prefix)
    ended(redis_store, "film", idempotency_key="k")
    raw.pexpire(keys.job("film"), 60_000)
    redis_store.submit(new_job("twin", idempotency_key="k"), op=op(), alias=True)
    redis_store.mark_part("film", "film:result")
    late = [keys.aliases("film"), keys.delivered("film"), keys.alias("twin")]
    assert all(0 < raw.ttl(key) <= 60 for key in late)


@pytest.mark.parametrize("verb", ["mark_part", "lock_delivery", "mark_delivered", "renew", "order"])
def test_no_verb_brings_a_record_back_to_life(
    redis_store: RedisStore, raw: Any, prefix: str, verb: str
) -> None:
    calls: dict[str, Callable[[], object]] = {
        "mark_part": lambda: redis_store.mark_part("film", "film:result"),
        "lock_delivery": lambda: redis_store.lock_delivery("film", token="t", busy_s=1),
        "mark_delivered": lambda: redis_store.mark_delivered("film", names=["film"], token="t"),
        "renew": lambda: redis_store.renew("film", 1, "t", lease_s=1, step=1, steps=2, phase=""),
        "order": lambda: redis_store.order("film", 1, "yield", reason="", op=op()),
    }
    calls[verb]()
    assert list(raw.scan_iter(f"{prefix}job:*")) == []


def test_the_key_check_finds_what_lives_for_ever(redis_store: RedisStore, raw: Any, prefix: str) -> None:
    ended(redis_store, "film")
    check_keys(raw, prefix)
    for key in ("job:film", "op:forgotten", "gpu:h100", "surprise"):
        raw.persist(prefix + key) or raw.set(prefix + key, "1")
        with pytest.raises(AssertionError, match=key):
            check_keys(raw, prefix)
        raw.delete(prefix + key)


def test_short_lived_keys_have_their_ttl(redis_store: RedisStore, raw: Any, prefix: str) -> None:
    keys = Keys(prefix)
    token = op()
    redis_store.release(QUEUE, op=token)
    redis_store.begin_tick("release", 1, token="t", busy_s=5)
    redis_store.end_tick("release", 1, token="t", report={"released": 2, "empty": []})
    assert 100 < raw.ttl(keys.op(token)) <= 120
    assert 86_000 < raw.ttl(keys.tick("release")) <= 86_400
    assert 170 < raw.ttl(keys.report("release")) <= 180
    assert raw.get(keys.report("release")) == '{"released": 2, "empty": []}'


# -- retention


def wait_for(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not done():
        assert time.monotonic() < deadline, "it did not happen within 5 s"
        time.sleep(0.01)


def gone(store: Store, name: str) -> bool:
    try:
        store.get(name)
    except errors.JobNotFound:
        return True
    return False


@pytest.fixture(params=["memory", "redis"])
def brief(request: pytest.FixtureRequest, valkey: Valkey, prefix: str) -> Store:
    """A store by the real clock that keeps ended jobs for a moment."""
    if request.param == "memory":
        return MemoryStore(retention_s=0.3)
    return RedisStore.from_url(valkey.url, retention_s=0.3, prefix=prefix)


def test_everything_of_a_job_goes_after_its_retention(brief: Store) -> None:
    lease = running(brief, "film", idempotency_key="k")
    brief.submit(new_job("twin", idempotency_key="k"), op=op(), alias=True)
    active = submitted(brief, "active")
    assert finish(brief, lease)
    assert not gone(brief, "film")
    wait_for(lambda: gone(brief, "film") and gone(brief, "twin"))
    wait_for(lambda: brief.counts()[State.SUCCEEDED] == 0)
    assert [job.id for job in brief.list_jobs().jobs] == [active]
    assert (brief.undelivered(), brief.aliases("film")) == ([], {})
    assert brief.submit(new_job("film", idempotency_key="k", body="new"), op=op()).created


def test_a_gpu_without_heartbeat_is_gone(brief: Store) -> None:
    brief.beat_gpu(GPU, ttl_s=0.1)
    assert brief.gpus() != []
    wait_for(lambda: brief.gpus() == [])


def test_a_dead_gpu_leaves_the_index(redis_store: RedisStore, raw: Any, prefix: str) -> None:
    redis_store.beat_gpu(GPU, ttl_s=60)
    raw.delete(Keys(prefix).gpu(GPU.name))
    assert redis_store.gpus() == []
    assert raw.exists(Keys(prefix).gpus()) == 0


def test_indexes_forget_what_is_past_retention(
    redis_store: RedisStore, raw: Any, prefix: str, clock: Clock
) -> None:
    keys = Keys(prefix)
    ended(redis_store, "old", tenant="acme")
    ended(redis_store, "failed", tenant="acme", outcome=FAILURE)
    clock.advance(RETENTION_S)
    ended(redis_store, "new", tenant="acme")
    indexes = [keys.jobs_all(), keys.jobs_tenant("acme")]
    assert [raw.zrange(key, 0, -1) for key in indexes] == [["new"], ["new"]]
    assert raw.zrange(keys.jobs_state(State.SUCCEEDED), 0, -1) == ["new"]
    assert raw.exists(keys.jobs_state(State.FAILED)) == 0
    assert raw.smembers(keys.undelivered()) == {"new"}
    assert raw.zcard(keys.ended()) == 1
    assert redis_store.counts()[State.FAILED] == 0


# -- members without a record (a server that lost keys)


def test_ghosts_are_passed_over_and_dropped(
    redis_store: RedisStore, raw: Any, prefix: str, clock: Clock
) -> None:
    keys = Keys(prefix)
    clock.advance(100)
    now = stamp(clock.now - 50)
    for key in (
        keys.backlog(QUEUE),
        keys.published("pro.a100"),
        keys.held(),
        keys.deadlines(),
        keys.running(),
    ):
        raw.zadd(key, {"ghost": now})
    raw.sadd(keys.undelivered(), "ghost")
    raw.zadd(keys.jobs_all(), {"ghost": now})
    job_id = submitted(redis_store)
    redis_store.set_quotas({QUEUE: 1}, op=op())
    assert [ticket.job_id for ticket in redis_store.release(QUEUE, op=op())] == [job_id]
    assert redis_store.heal("pro.a100", older_s=1, op=op()) == []
    assert redis_store.wake(op=op()) == []
    assert reap(redis_store, max_crashes=3) == []
    assert not redis_store.lock_delivery("ghost", token="t", busy_s=1)
    assert [job.id for job in redis_store.list_jobs().jobs] == [job_id]
    left = [
        key for key in raw.scan_iter(f"{prefix}*") if raw.type(key) == "zset" and raw.zscore(key, "ghost")
    ]
    assert left == [keys.jobs_all()]
    raw.sadd(keys.undelivered(), "ghost")
    assert redis_store.mark_delivered("ghost", names=["ghost"], token="t")
    assert redis_store.undelivered() == []


def test_a_record_of_a_newer_format_is_left_alone(redis_store: RedisStore, raw: Any, prefix: str) -> None:
    ticket = queued(redis_store)
    raw.hset(Keys(prefix).job(ticket.job_id), mapping={"format": "2", "novelty": "x"})
    before = raw.hgetall(Keys(prefix).job(ticket.job_id))
    assert redis_store.claim(ticket, worker="w", token="t", lease_s=1) == ClaimRefused("unknown-format")
    home = {"home": f"passed.{ticket.queue}"}  # it takes no place of its queue's quota
    assert raw.hgetall(Keys(prefix).job(ticket.job_id)) == before | home
    assert redis_store.published() == {home["home"]: 1}
    assert redis_store.get(ticket.job_id).format == 2
    raw.hset(Keys(prefix).job(ticket.job_id), "format", "1")
    assert claimed(redis_store, ticket).attempt == 1


def test_a_rolled_back_record_is_adopted_by_the_newest_attempt(
    redis_store: RedisStore, raw: Any, prefix: str
) -> None:
    """The whole path: a replica that missed the second claim takes over."""
    lease = running(redis_store, "film")
    redis_store.hand_back("film", 1, lease.token, reason="", op=op())
    ticket = redis_store.release(QUEUE, op=op())[0]
    snapshot = _dump(raw, prefix)
    second = claimed(redis_store, ticket)
    _restore(raw, prefix, snapshot)
    assert redis_store.get("film").state is State.QUEUED
    assert redis_store.renew("film", 1, lease.token, lease_s=5, step=1, steps=8, phase="") == "fenced"
    assert redis_store.renew("film", 2, second.token, lease_s=5, step=3, steps=8, phase="") == ""
    assert redis_store.claim(ticket, worker="w", token="late", lease_s=5) == ClaimRefused("held-by-other")
    assert finish(redis_store, second)


def _dump(raw: Any, prefix: str) -> dict[str, bytes]:
    binary = _binary(raw)
    return {key: binary.dump(key) for key in raw.scan_iter(f"{prefix}*")}


def _restore(raw: Any, prefix: str, snapshot: dict[str, bytes]) -> None:
    for key in raw.scan_iter(f"{prefix}*"):
        raw.delete(key)
    for key, value in snapshot.items():
        ttl = 100_000 if ":op:" in key or ":tenant:" in key else 0
        _binary(raw).restore(key, ttl, value)


def _binary(raw: Any) -> Any:
    port = raw.connection_pool.connection_kwargs["port"]
    return redis.Redis(host="127.0.0.1", port=port)


# -- the server's own time


def test_without_a_clock_the_server_tells_the_time(valkey: Valkey, raw: Any, prefix: str) -> None:
    store = RedisStore(raw, retention_s=60, prefix=prefix)
    before = raw.time()
    job_id = submitted(store)
    seconds = before[0] + before[1] / 1e6
    assert seconds <= store.get(job_id).created_at <= store.now() < seconds + 5
    check_keys(raw, prefix)
