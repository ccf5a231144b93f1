"""The part of the in-memory store that knows no jobs; ``fleet.py`` documents the verbs."""
# ruff: noqa: D102, ARG002 - the protocol documents the verbs; ``once`` reads ``op``

from __future__ import annotations

import copy
import json
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from callsheet.records.gpus import Gpu, GpuOrder
from callsheet.records.lanes import Desired
from callsheet.store import rules
from callsheet.store.fleet import NO_ROUTES, Fleet
from callsheet.store.steps import Steps, atomic, once
from callsheet.store.ticks import Tick


class MemoryFleet(Steps, Fleet):
    """Quotas, ticks, GPUs and their orders."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self._quotas: dict[str, int] = {}
        self._routes: dict[str, tuple[str, ...]] = {}
        self._desired: dict[str, Desired] = {}
        self._memories: dict[str, tuple[str, float]] = {}  # as JSON, with the time of their end
        self._plans: deque[dict[str, Any]] = deque(maxlen=rules.PLANS_MAX)
        self._gpus: dict[str, tuple[Gpu, float]] = {}  # with the end of its heartbeat
        self._orders: dict[str, GpuOrder] = {}
        self._ticks: defaultdict[str, Tick] = defaultdict(Tick)
        self._urgent_until = 0.0
        self._witnessed: float | None = None  # when the store last answered
        self._gap_s: float | None = None  # a longer silence is an absence, says the reaper
        self._returned: float | None = None  # when the last absence ended

    def _witness(self) -> None:
        known = self._witnessed is not None and self._gap_s is not None
        if known and self._now - (self._witnessed or 0.0) > (self._gap_s or 0.0):
            self._returned = self._now
        self._witnessed = self._now

    def _ask_urgently(self) -> bool:
        """Whether this is the first to ask."""
        if self._urgent_until > self._now:
            return False
        self._urgent_until = self._now + rules.URGENT_TTL_S
        return True

    @once
    def set_quotas(
        self, quotas: dict[str, int], *, routes: Mapping[str, tuple[str, ...]] = NO_ROUTES, op: str
    ) -> None:
        self._quotas, self._routes = dict(quotas), dict(routes)

    @once
    def desire(self, changes: Mapping[str, Desired | None], *, op: str) -> None:
        for name, desired in changes.items():
            had = self._desired.pop(name, None)
            if desired is not None:
                same = had is not None and had.load == desired.load
                self._desired[name] = replace(desired, at=had.at if had and same else self._now)

    @atomic
    def desired(self) -> dict[str, Desired]:
        return dict(sorted(self._desired.items()))

    @atomic
    def desired_of(self, name: str) -> Desired | None:
        return self._desired.get(name)

    @once
    def remember(self, name: str, memory: dict[str, Any], *, op: str) -> None:
        self._memories[name] = json.dumps(memory), self._now + rules.MEMORY_TTL_S

    @atomic
    def recall(self, name: str) -> dict[str, Any]:
        text, until = self._memories.get(name, ("{}", 0.0))
        return dict(json.loads(text)) if until > self._now else {}

    @once
    def keep_plan(self, plan: dict[str, Any], *, op: str) -> None:
        self._plans.append({**copy.deepcopy(plan), "at": self._now})

    @atomic
    def plans(self) -> list[dict[str, Any]]:
        return [copy.deepcopy(plan) for plan in self._plans if plan["at"] > self._now - rules.PLANS_TTL_S]

    @atomic
    def begin_tick(self, controller: str, number: int, *, token: str, busy_s: float) -> bool:
        rules.check_op(token)
        self._witness()
        return self._ticks[controller].begin(number, token, busy_s, self._now)

    @atomic
    def end_tick(self, controller: str, number: int, *, token: str, report: dict[str, Any]) -> bool:
        return self._ticks[controller].end(number, token, report, self._now)

    @atomic
    def last_report(self, controller: str) -> dict[str, Any]:
        return self._ticks[controller].fresh_report(self._now)

    @atomic
    def take_urgent(self) -> None:
        self._urgent_until = 0.0

    @atomic
    def beat_gpu(self, gpu: Gpu, *, ttl_s: float) -> None:
        self._gpus[gpu.name] = replace(gpu, seen_at=self._now), self._now + ttl_s

    @atomic
    def drop_gpu(self, name: str) -> None:
        self._gpus.pop(name, None)
        self._desired.pop(name, None)

    @atomic
    def gpus(self) -> list[Gpu]:
        for name in [name for name, row in self._gpus.items() if row[1] <= self._now]:
            del self._gpus[name]
            self._desired.pop(name, None)
        self._gpus = dict(sorted(self._gpus.items()))
        return [gpu for gpu, _ in self._gpus.values()]

    @once
    def order_gpu(self, name: str, order: GpuOrder | None, *, op: str) -> None:
        if order is None:
            self._orders.pop(name, None)
            return
        rules.check_gpu_order(order.action)
        self._orders[name] = replace(order, since=self._now, give_up_at=rules.micro(order.give_up_at))

    @atomic
    def gpu_order(self, name: str) -> GpuOrder | None:
        return self._orders.get(name)

    @atomic
    def gpu_orders(self) -> dict[str, GpuOrder]:
        return dict(sorted(self._orders.items()))
