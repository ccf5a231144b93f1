"""Admission at submit: asks the store for as little as it takes, and for nothing while nothing waits long."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from callsheet.errors import JobNotFound, NotAdmitted
from callsheet.records.jobs import NewJob
from callsheet.routing.admission import (
    ADMISSION,
    FRESH_S,
    Flows,
    predict,
    refusal,
    retry_after_s,
    too_long,
)
from callsheet.routing.fleet import FleetRules
from callsheet.store.protocol import Store

LOOK_S = 1.0  # how long a look at the flows is good for


class Admission:
    """One per process. ``clock`` answers seconds; only differences count."""

    def __init__(self, store: Store, rules: FleetRules, clock: Callable[[], float]) -> None:
        self._store, self._rules, self._clock = store, rules, clock
        self._looked_at: float | None = None
        self._flows: Flows | None = None
        self._since: defaultdict[str, float] = defaultdict(float)  # tier -> work admitted since the look

    def check(self, job: NewJob) -> None:
        """Raises NotAdmitted for a job that would wait longer than its tier promises.

        A job that is recorded already is no new one: its submit answers what the first one did.
        """
        rule = self._rules.tier(job.request.tier)
        if not rule.longest_wait_s or job.request.not_before > 0:
            return
        seen = self._look()
        if seen is None:
            return
        work_s = seen.left.get(rule.name, 0.0) + self._since[rule.name]
        if too_long(predict(rule.name, work_s, seen, self._rules.tiers), rule):
            self._look_closely(job, seen)
        self._since[rule.name] += job.work_s

    def _look_closely(self, job: NewJob, seen: Flows) -> None:
        """What stands before this very job: a tenant within its turns goes before one that is beyond."""
        rule = self._rules.tier(job.request.tier)
        place = self._store.turn(rule.name, job.request.tenant).next + job.delay_s
        before = self._store.before(rule.name, place).values()
        work_s, jobs = sum(one.work_s for one in before), sum(one.jobs for one in before)
        prediction = predict(rule.name, work_s, seen, self._rules.tiers)
        if too_long(prediction, rule) and not self._recorded(job):
            raise NotAdmitted(
                refusal(prediction, jobs, rule, self._rules.tiers),
                retry_after_s=retry_after_s(prediction, rule),
            )

    def _recorded(self, job: NewJob) -> bool:
        request = job.request
        if request.idempotency_key and self._store.keyed(request.tenant, request.idempotency_key):
            return True
        try:
            return bool(self._store.resolve(job.id))
        except JobNotFound:
            return False

    def _look(self) -> Flows | None:
        """The flows of the last tick, looked up at most once a second; None without a tick of late."""
        now = self._clock()
        if self._looked_at is None or not 0 <= now - self._looked_at < LOOK_S:
            self._looked_at = now
            self._since.clear()
            self._flows = Flows.from_json(self._store.recall(ADMISSION))
            if self._store.now() - self._flows.at > FRESH_S:
                self._flows = None
        return self._flows
