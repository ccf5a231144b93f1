"""The memory: a Protocol with one verb per atomic step (``protocol.py``), in Redis and in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callsheet.store.protocol import Store


def open_store(
    url: str, *, retention_s: float, connect_timeout_s: float = 3.0, replica_wait_ms: float = 200.0
) -> Store:
    """The store at ``redis://``, ``rediss://``, ``unix://``, ``sentinel://``; ``memory://``: here.

    ``replica_wait_ms``: how long a submit and a job's end wait for a replica, where there is one. Connects at
    the first verb, which raises Unreachable. Raises SettingsError for a URL that cannot be read.
    """
    if url.startswith("memory://"):
        from callsheet.store.memory import MemoryStore

        return MemoryStore(retention_s=retention_s)
    from callsheet.store.redis_store import RedisStore

    return RedisStore.from_url(
        url,
        retention_s=retention_s,
        connect_timeout_s=connect_timeout_s,
        replica_wait_ms=replica_wait_ms,
    )
