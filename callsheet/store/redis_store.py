"""The store in Redis (or Valkey): what several processes and machines share."""
# ruff: noqa: D102 - the protocol documents the verbs

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import redis

from callsheet.records.jobs import (
    NOTHING,
    AttemptRecord,
    Checkpoint,
    Event,
    Job,
    NewJob,
    Outcome,
    Spent,
    Submitted,
    Ticket,
)
from callsheet.records.lanes import Waiting
from callsheet.records.states import State
from callsheet.store import codec, rules
from callsheet.store.connection import WAIT_MS, Connection, connect
from callsheet.store.keys import PREFIX, Keys
from callsheet.store.protocol import ClaimRefused, Lease, Page, Store
from callsheet.store.redis_turns import RedisTurns
from callsheet.store.scripts import Clock, Scripts

T = TypeVar("T")

_CHUNK = 200  # records read per round trip of a listing


class RedisStore(RedisTurns, Store):
    """See :class:`~callsheet.store.protocol.Store` for the verbs. Safe for threads, and across a fork.

    ``client`` must decode responses. ``retention_s``: how long a record outlives its end. ``clock`` replaces
    the server's time in tests; leave it out everywhere else.
    """

    def __init__(
        self,
        client: redis.Redis,
        *,
        retention_s: float,
        prefix: str = PREFIX,
        connect_timeout_s: float = 3.0,
        clock: Clock | None = None,
    ) -> None:
        self._open(Connection(client, connect_timeout_s), retention_s, prefix, clock)

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        retention_s: float,
        connect_timeout_s: float = 3.0,
        replica_wait_ms: float = WAIT_MS,
        prefix: str = PREFIX,
        clock: Clock | None = None,
    ) -> RedisStore:
        """A store at ``redis://``, ``rediss://``, ``unix://`` or ``sentinel://``; connects at the first verb.

        An outage is told after at most 1.5 x ``connect_timeout_s``. Raises SettingsError for a URL that it
        cannot read.
        """
        store = cls.__new__(cls)
        store._open(connect(url, connect_timeout_s, replica_wait_ms), retention_s, prefix, clock)
        return store

    def _open(self, connection: Connection, retention_s: float, prefix: str, clock: Clock | None) -> None:
        self._connection = connection
        self._client = connection.client
        self._clock = clock
        self._keys = Keys(prefix)
        self._scripts = Scripts(connection, prefix=prefix, retention_s=retention_s, clock=clock)

    # -- the life of a job -----------------------------------------------------------------------------------

    def submit(self, job: NewJob, *, op: str, alias: bool = False, release: bool = False) -> Submitted:
        rules.check_submit(job, op)
        kind, first, urgent, tickets, replicated = self._scripts.submit(
            job.id,
            alias=alias,
            release=release,
            urgent=rules.is_urgent(job),
            fields=codec.new_job_fields(job),
            op=op,
        )
        if kind == "conflict":
            raise rules.conflict(job, first)
        released = tuple(codec.read_tickets(tickets))
        return Submitted(first, kind == "created", urgent, released, replicated)

    def release(self, queue: str, *, op: str) -> list[Ticket]:
        rules.check_op(op)
        return codec.read_tickets(self._scripts.release(queue, op=op))

    def claim(
        self, ticket: Ticket, *, worker: str, token: str, lease_s: float, build: str = ""
    ) -> Lease | ClaimRefused:
        rules.check_op(token)
        kind, rest = self._scripts.claim(ticket, worker=worker, token=token, lease_s=lease_s, build=build)
        if kind == "refused":
            return ClaimRefused(rest[0])
        job = codec.read_job(ticket.job_id, codec.pairs(rest[1:]))
        return Lease(job, job.attempt, job.token, job.lease_until, mean_s_between_losses=float(rest[0]))

    def renew(
        self,
        job_id: str,
        attempt: int,
        token: str,
        *,
        lease_s: float,
        step: int,
        steps: int,
        phase: str,
        loading_s: float = 0.0,
        step_s: float = 0.0,
        worker: str = "",
    ) -> str:
        told = (step, steps, phase, codec.stamp(loading_s), worker, codec.stamp(step_s))
        return self._scripts.renew(job_id, attempt, token, lease_s, *told)

    def keep_checkpoint(
        self, job_id: str, attempt: int, token: str, checkpoint: Checkpoint, *, useful_s: float, op: str
    ) -> list[Checkpoint] | None:
        rules.check_op(op)
        dropped = self._scripts.keep_checkpoint(
            job_id, attempt, token, checkpoint=checkpoint, useful=useful_s, op=op
        )
        return None if dropped is None else [codec.read_checkpoint(text) for text in dropped]

    def start_from(
        self, job_id: str, attempt: int, token: str, *, step: int, exact: bool, reason: str, op: str
    ) -> bool:
        rules.check_op(op)
        return self._scripts.start_from(job_id, attempt, token, step=step, exact=exact, reason=reason, op=op)

    def decline(self, job_id: str, attempt: int, token: str, *, reason: str, op: str) -> bool:
        rules.check_op(op)
        return self._scripts.decline(job_id, attempt, token, reason=reason, op=op)

    def finish(self, job_id: str, attempt: int, token: str, outcome: Outcome, *, op: str) -> bool:
        rules.check_op(op)
        rules.check_outcome(outcome)
        return self._scripts.finish(job_id, attempt, token, outcome, op=op)

    def hand_back(
        self,
        job_id: str,
        attempt: int,
        token: str,
        *,
        reason: str,
        op: str,
        spent: Spent = NOTHING,
        preempted: bool = True,
    ) -> bool:
        rules.check_op(op)
        return self._scripts.hand_back(
            job_id, attempt, token, reason=reason, spent=spent, preempted=preempted, op=op
        )

    def lose(self, job_id: str, attempt: int, token: str, *, reason: str, max_crashes: int, op: str) -> bool:
        rules.check_op(op)
        return self._scripts.lose(job_id, attempt, token, reason=reason, max_crashes=max_crashes, op=op)

    def requeue(self, job_id: str, *, from_start: bool, reason: str, op: str) -> State:
        rules.check_op(op)
        before = self.get(job_id)
        request = codec.request_json(replace(before.request, deadline=0.0))
        found = self._scripts.requeue(before.id, from_start=from_start, reason=reason, request=request, op=op)
        if found is None:
            raise rules.not_found(job_id)
        requeued, state = found
        if not requeued:
            raise rules.not_requeued(before.id, state, erased=before.erased)
        return state

    def erase(self, job_id: str, *, op: str) -> Job:
        rules.check_op(op)
        before = self.get(job_id)
        request = codec.request_json(rules.without_prompt(before.request))
        if not self._scripts.erase(before.id, request, op=op):
            raise rules.not_erased(before.id, before.state)
        return before

    def cancel(self, job_id: str, *, reason: str, op: str) -> State:
        rules.check_op(op)
        state = self._scripts.cancel(job_id, reason=reason, op=op) if rules.is_id(job_id) else None
        if state is None:
            raise rules.not_found(job_id)
        return state

    def order(self, job_id: str, attempt: int, order: str, *, reason: str, op: str) -> bool:
        rules.check_op(op)
        rules.check_order(order)
        return self._scripts.order(job_id, attempt, order, reason=reason, op=op)

    # -- controllers -----------------------------------------------------------------------------------------

    def reap(self, *, max_crashes: int, op: str, lease_s: float, gap_s: float, limit: int = 100) -> list[str]:
        rules.check_op(op)
        return self._scripts.reap(max_crashes=max_crashes, limit=limit, lease_s=lease_s, gap_s=gap_s, op=op)

    def assign(
        self,
        job_id: str,
        queue: str,
        *,
        reason: str,
        op: str,
        ticket: int | None = None,
        victim: tuple[str, int] | None = None,
    ) -> Ticket | None:
        rules.check_op(op)
        found = self._scripts.assign(job_id, queue, reason=reason, ticket=ticket, victim=victim, op=op)
        return Ticket(job_id, found[0], queue, found[1]) if found else None

    def heal(
        self, queue: str, *, older_s: float, op: str, limit: int = 100, reason: str = rules.HEALED
    ) -> list[str]:
        rules.check_op(op)
        return self._scripts.heal(queue, older_s=older_s, limit=limit, reason=reason, op=op)

    def wake(self, *, op: str, limit: int = 1000) -> list[str]:
        rules.check_op(op)
        return sorted(self._scripts.wake(limit=limit, op=op))

    def reroute(self, job_id: str, *, gpu_class: str, queue: str, op: str) -> bool:
        rules.check_op(op)
        return self._scripts.reroute(job_id, gpu_class=gpu_class, queue=queue, op=op)

    # -- delivery --------------------------------------------------------------------------------------------

    def undelivered(self, limit: int = 100) -> list[str]:
        # Drawn at random, so that jobs which cannot be delivered never hide the others.
        return cast(list[str], self._ask(lambda: self._client.srandmember(self._keys.undelivered(), limit)))

    def lock_delivery(self, job_id: str, *, token: str, busy_s: float) -> bool:
        rules.check_op(token)
        return self._scripts.lock_delivery(job_id, token=token, busy_s=busy_s)

    def aliases(self, job_id: str) -> dict[str, dict[str, Any]]:
        found = self._ask(lambda: self._client.hgetall(self._keys.aliases(job_id)))
        return {name: json.loads(canvas) for name, canvas in found.items()}

    def delivered_parts(self, job_id: str) -> frozenset[str]:
        return frozenset(self._ask(lambda: self._client.smembers(self._keys.delivered(job_id))))

    def mark_part(self, job_id: str, part: str) -> None:
        self._scripts.mark_part(job_id, part)

    def mark_delivered(self, job_id: str, *, names: Iterable[str], token: str) -> bool:
        return self._scripts.mark_delivered(job_id, names=tuple(names), token=token)

    # -- looking ---------------------------------------------------------------------------------------------

    def resolve(self, name: str) -> str:
        if not rules.is_id(name):
            raise rules.not_found(name)
        found, first = self._pipeline(
            lambda pipe: pipe.exists(self._keys.job(name)).get(self._keys.alias(name))
        )
        if not found and not first:
            raise rules.not_found(name)
        return name if found else cast(str, first)

    def get(self, job_id: str) -> Job:
        job = self.get_many([job_id])[0] or self.get_many([self.resolve(job_id)])[0]
        if job is None:
            raise rules.not_found(job_id)
        return job

    def get_many(self, job_ids: Sequence[str]) -> list[Job | None]:
        wanted = [job_id for job_id in job_ids if rules.is_id(job_id)]
        if not wanted:
            return [None] * len(job_ids)

        def read(pipe: Any) -> None:
            for job_id in wanted:
                pipe.hgetall(self._keys.job(job_id))

        records = dict(zip(wanted, self._pipeline(read), strict=True))
        return [
            codec.read_job(job_id, records[job_id]) if records.get(job_id) else None for job_id in job_ids
        ]

    def list_jobs(
        self, *, state: State | None = None, tenant: str = "", limit: int = 50, cursor: str = ""
    ) -> Page:
        below = f"({rules.cursor_score(cursor)!r}"
        found: list[Job] = []
        while len(found) <= limit:
            chunk, below = self._index_chunk(state, tenant, below)
            jobs = [job for job in self.get_many(chunk) if job is not None]
            found += [
                job for job in jobs if state in (None, job.state) and tenant in ("", job.request.tenant)
            ]
            if not below:
                break
        return Page(jobs=tuple(found[:limit]), cursor=rules.next_cursor(found, limit))

    def _index_chunk(self, state: State | None, tenant: str, below: str) -> tuple[list[str], str]:
        """Next ids, newest first, and the bound for the ids after them ("" = none are left)."""
        if tenant:
            index = self._keys.jobs_tenant(tenant)
        else:
            index = self._keys.jobs_state(state) if state else self._keys.jobs_all()
        rows = self._ask(
            lambda: self._client.zrevrangebyscore(index, below, "-inf", start=0, num=_CHUNK, withscores=True)
        )
        after = f"({codec.stamp(rows[-1][1])}" if len(rows) == _CHUNK else ""
        return [row[0] for row in rows], after

    def counts(self) -> dict[State, int]:
        found = codec.pairs(self._scripts.counts())
        return {state: int(found[state]) for state in State}

    def backlog(self) -> dict[str, int]:
        return self._depths("backlog")

    def backlog_jobs(self, queue: str, limit: int = 100) -> list[str]:
        return self._front(self._keys.backlog(queue), limit)

    def lanes(self, heads: int = 1) -> list[Waiting]:
        return [codec.read_waiting(row, heads) for row in sorted(self._scripts.lanes(heads))]

    def published_jobs(self, queue: str, limit: int = 100) -> list[str]:
        return self._front(self._keys.published(queue), limit)

    def _front(self, key: str, limit: int) -> list[str]:
        return cast(list[str], self._ask(lambda: self._client.zrange(key, 0, limit - 1))) if limit > 0 else []

    def published(self) -> dict[str, int]:
        return self._depths("published")

    def _depths(self, place: str) -> dict[str, int]:
        found = codec.pairs(self._scripts.depths(place))
        return {queue: int(depth) for queue, depth in sorted(found.items())}

    def running(self) -> list[Job]:
        ids = self._ask(lambda: self._client.zrange(self._keys.running(), 0, -1))
        return [job for job in self.get_many(ids) if job is not None and job.state is State.RUNNING]

    def parked(self) -> list[Job]:
        ids = self._ask(lambda: self._client.zrangebyscore(self._keys.held(), "+inf", "+inf"))
        return [job for job in self.get_many(ids) if job is not None and job.state is State.HELD]

    def attempts(self, job_id: str) -> list[AttemptRecord]:
        rows = self._ask(lambda: self._client.hgetall(self._keys.attempts(self.resolve(job_id))))
        return sorted((codec.read_attempt(*row) for row in rows.items()), key=lambda row: row.number)

    def erasing(self) -> dict[str, float]:
        rows = self._ask(lambda: self._client.zrange(self._keys.erasing(), 0, -1, withscores=True))
        return dict(rows)

    def erased(self, job_id: str) -> None:
        self._ask(lambda: self._client.zrem(self._keys.erasing(), job_id))

    def events(self, job_id: str) -> list[Event]:
        key = self._keys.events(self.resolve(job_id))
        return [codec.read_event(entry) for _, entry in self._ask(lambda: self._client.xrange(key))]

    # -- the server ------------------------------------------------------------------------------------------

    def ping(self) -> dict[str, Any]:
        info = self._ask(lambda: self._client.info())
        return {
            "version": info.get("valkey_version") or info.get("redis_version", "?"),
            "appendonly": "yes" if info.get("aof_enabled") else "no",
            "maxmemory_policy": info.get("maxmemory_policy", "?"),
            "used_memory": int(info.get("used_memory", 0)),
        }

    def close(self) -> None:
        self._client.close()
