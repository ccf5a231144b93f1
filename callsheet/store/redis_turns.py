"""Places in line in Redis; see :class:`~callsheet.store.turns.Turns` for the verbs."""
# ruff: noqa: D102 - the protocol documents the verbs

from __future__ import annotations

from collections.abc import Mapping

from callsheet.records.lanes import Before, Turn
from callsheet.store import codec, rules
from callsheet.store.keys import tag
from callsheet.store.redis_fleet import RedisFleet
from callsheet.store.turns import Turns


class RedisTurns(RedisFleet, Turns):
    """Turns of tenants, and what stands before a place."""

    def turn(self, tier: str, tenant: str) -> Turn:
        virtual, turn = self._scripts.turn(tier, tag(tenant))
        return Turn(float(virtual), float(turn))

    def before(self, tier: str, key: float) -> dict[str, Before]:
        flat = self._scripts.before(tier, codec.stamp(key))
        rows = sorted(zip(flat[::3], flat[1::3], flat[2::3], strict=True))
        return {queue: Before(int(jobs), float(work_s)) for queue, jobs, work_s in rows}

    def keyed(self, tenant: str, key: str) -> str:
        return self._ask(lambda: self._client.hget(self._keys.idem(tenant, key), "job_id")) or ""

    def hasten(self, older_s: Mapping[str, float], *, op: str, limit: int = 1000) -> list[str]:
        rules.check_op(op)
        return self._scripts.hasten(older_s, limit=limit, op=op)
