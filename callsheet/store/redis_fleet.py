"""The part of the Redis store that knows no jobs; see :class:`~callsheet.store.fleet.Fleet` for the verbs."""
# ruff: noqa: D102 - the protocol documents the verbs

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import redis

from callsheet.records.gpus import Gpu, GpuOrder
from callsheet.records.lanes import Desired
from callsheet.store import codec, rules
from callsheet.store.connection import Connection
from callsheet.store.fleet import NO_ROUTES, Fleet
from callsheet.store.keys import Keys
from callsheet.store.scripts import Clock, Scripts


class RedisFleet(Fleet):
    """Quotas, ticks, GPUs and their orders. ``RedisStore`` opens the connection."""

    _connection: Connection
    _client: redis.Redis
    _clock: Clock | None
    _keys: Keys
    _scripts: Scripts

    def _ask(self, command: Callable[[], Any]) -> Any:
        return self._connection.call(command)

    def _pipeline(self, fill: Callable[[Any], object]) -> list[Any]:
        def run() -> list[Any]:
            with self._client.pipeline(transaction=True) as pipe:
                fill(pipe)
                return pipe.execute()

        return self._connection.call(run)

    def now(self) -> float:
        if self._clock:
            return rules.micro(self._clock())
        seconds, micros = self._ask(lambda: self._client.time())
        return float(seconds) + float(micros) / 1e6

    def set_quotas(
        self, quotas: dict[str, int], *, routes: Mapping[str, tuple[str, ...]] = NO_ROUTES, op: str
    ) -> None:
        rules.check_op(op)
        self._scripts.set_quotas(quotas, routes=routes, op=op)

    def desire(self, changes: Mapping[str, Desired | None], *, op: str) -> None:
        rules.check_op(op)
        wishes = {name: codec.desired_json(wish) if wish else "" for name, wish in changes.items()}
        self._scripts.desire(wishes, op=op)

    def desired(self) -> dict[str, Desired]:
        found = self._ask(lambda: self._client.hgetall(self._keys.desired()))
        return {name: codec.read_desired(text) for name, text in sorted(found.items())}

    def desired_of(self, name: str) -> Desired | None:
        found = self._ask(lambda: self._client.hget(self._keys.desired(), name))
        return codec.read_desired(found) if found else None

    def remember(self, name: str, memory: dict[str, Any], *, op: str) -> None:
        rules.check_op(op)
        self._scripts.remember(name, json.dumps(memory), op=op)

    def recall(self, name: str) -> dict[str, Any]:
        kept = self._ask(lambda: self._client.get(self._keys.memory(name)))
        return cast(dict[str, Any], json.loads(kept)) if kept else {}

    def keep_plan(self, plan: dict[str, Any], *, op: str) -> None:
        rules.check_op(op)
        self._scripts.keep_plan(json.dumps(plan), op=op)

    def plans(self) -> list[dict[str, Any]]:
        rows = [json.loads(row) for row in self._ask(lambda: self._client.lrange(self._keys.plans(), 0, -1))]
        since = self.now() - rules.PLANS_TTL_S
        return [{**json.loads(plan), "at": float(at)} for at, plan in rows if float(at) > since]

    def begin_tick(self, controller: str, number: int, *, token: str, busy_s: float) -> bool:
        rules.check_op(token)
        return self._scripts.begin_tick(controller, number, token=token, busy_s=busy_s)

    def end_tick(self, controller: str, number: int, *, token: str, report: dict[str, Any]) -> bool:
        return self._scripts.end_tick(controller, number, token=token, report=json.dumps(report))

    def last_report(self, controller: str) -> dict[str, Any]:
        kept = self._ask(lambda: self._client.get(self._keys.report(controller)))
        return cast(dict[str, Any], json.loads(kept)) if kept else {}

    def take_urgent(self) -> None:
        self._ask(lambda: self._client.delete(self._keys.urgent()))

    def beat_gpu(self, gpu: Gpu, *, ttl_s: float) -> None:
        self._scripts.beat_gpu(gpu.name, ttl_s=ttl_s, fields=codec.gpu_fields(gpu))

    def drop_gpu(self, name: str) -> None:
        keys = self._keys
        self._pipeline(
            lambda pipe: (
                pipe.delete(keys.gpu(name)),
                pipe.srem(keys.gpus(), name),
                pipe.hdel(keys.desired(), name),
            )
        )

    def gpus(self) -> list[Gpu]:
        return [codec.read_gpu(name, codec.pairs(fields)) for name, fields in sorted(self._scripts.gpus())]

    def order_gpu(self, name: str, order: GpuOrder | None, *, op: str) -> None:
        rules.check_op(op)
        if order is not None:
            rules.check_gpu_order(order.action)
        self._scripts.order_gpu(name, codec.gpu_order_fields(order) if order else {}, op=op)

    def gpu_order(self, name: str) -> GpuOrder | None:
        found = self._ask(lambda: self._client.hgetall(self._keys.gpu_order(name)))
        return codec.read_gpu_order(found) if found else None

    def gpu_orders(self) -> dict[str, GpuOrder]:
        names = sorted(self._ask(lambda: self._client.smembers(self._keys.gpu_orders())))
        return {name: order for name in names if (order := self.gpu_order(name)) is not None}
