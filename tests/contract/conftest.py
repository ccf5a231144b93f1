"""Both stores behind one fixture; the one in Redis is checked for keys that live for ever after each test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from callsheet.store.memory import MemoryStore
from callsheet.store.protocol import Store
from callsheet.store.redis_store import RedisStore
from tests.support.clock import Clock
from tests.support.keys import check_keys
from tests.support.valkey import Valkey

RETENTION_S = 3600.0


@pytest.fixture
def clock() -> Clock:
    """The time of the store under test."""
    return Clock()


@pytest.fixture
def prefix() -> str:
    """Keys of this test only."""
    return f"test-{uuid.uuid4().hex[:8]}:"


@pytest.fixture
def redis_store(valkey: Valkey, clock: Clock, prefix: str) -> Iterator[RedisStore]:
    """The store in a real Valkey."""
    store = RedisStore.from_url(valkey.url, retention_s=RETENTION_S, prefix=prefix, clock=clock)
    yield store
    check_keys(valkey.client(), prefix)
    store.close()


@pytest.fixture
def memory_store(clock: Clock) -> MemoryStore:
    """The store in memory."""
    return MemoryStore(clock, retention_s=RETENTION_S)


@pytest.fixture(params=["memory", "redis"])
def store(request: pytest.FixtureRequest) -> Store:
    """One store after the other."""
    found: Store = request.getfixturevalue(f"{request.param}_store")
    return found
