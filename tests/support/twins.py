"""Two stores that lead the same life with the same tokens, so that all they keep can be compared."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import redis

from callsheet.records.jobs import Ticket
from callsheet.store.protocol import Lease
from callsheet.store.redis_store import RedisStore
from tests.support.jobs import QUEUE, checkpoint, new_job


class Twin:
    """One of them. Its ops are counted, its tokens named."""

    def __init__(self, store: RedisStore) -> None:
        self.store = store
        self._numbers = itertools.count(1)

    def op(self) -> str:
        """The next token of this life."""
        return f"op-{next(self._numbers)}"

    def submitted(self, name: str = "film", **changes: Any) -> str:
        """A job that waits."""
        return self.store.submit(new_job(name, **changes), op=self.op()).job_id

    def delayed(self, name: str) -> None:
        """A job that waits behind its turn."""
        self.store.submit(replace(new_job(name), delay_s=600.0), op=self.op())

    def quotas(self) -> dict[str, int]:
        """Room for a hundred tickets."""
        quotas = {QUEUE: 100}
        self.store.set_quotas(quotas, op=self.op())
        return quotas

    def queued(self, name: str = "film", **changes: Any) -> Ticket:
        """A job with a ticket."""
        self.submitted(name, **changes)
        self.quotas()
        return self.store.release(QUEUE, op=self.op())[-1]

    def running(self, name: str = "film", *, token: str = "token", **changes: Any) -> Lease:
        """A job that began, for ten seconds."""
        lease = self.store.claim(self.queued(name, **changes), worker="w", token=token, lease_s=10.0)
        assert isinstance(lease, Lease)
        return lease

    def kept(self, *steps: int) -> Lease:
        """A running job with checkpoints."""
        lease = self.running()
        for step in steps:
            fence = (lease.job.id, lease.attempt, lease.token)
            assert self.store.keep_checkpoint(*fence, checkpoint(step), useful_s=1.0, op=self.op()) == []
        return lease


def everything(client: redis.Redis, prefix: str) -> dict[str, Any]:
    """All that a store keeps: key without the prefix -> its value. Ids of events are the server's own."""
    found: dict[str, Any] = {}
    for key in client.scan_iter(f"{prefix}*", count=1000):
        kind = client.type(key)
        if kind == "string":
            value: Any = client.get(key)
        elif kind == "hash":
            value = client.hgetall(key)
        elif kind == "set":
            value = client.smembers(key)
        elif kind == "zset":
            value = client.zrange(key, 0, -1, withscores=True)
        elif kind == "list":
            value = client.lrange(key, 0, -1)
        else:
            value = [fields for _, fields in client.xrange(key) or []]
        found[key.removeprefix(prefix)] = value
    return found
