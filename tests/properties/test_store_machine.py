"""One random life of many jobs, led in both stores at once: same answers, same records, same indexes.

Beside the comparison it checks what must hold whatever happens: tickets and attempts only rise, and every job
stands in exactly the indexes of its state.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from dataclasses import replace
from operator import methodcaller
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from callsheet import errors
from callsheet.records.gpus import GpuOrder
from callsheet.records.jobs import Checkpoint, Spent, Ticket
from callsheet.records.states import TERMINAL, State
from callsheet.store.memory import MemoryStore
from callsheet.store.protocol import ClaimRefused, Lease, Store
from callsheet.store.redis_store import RedisStore
from tests.support.clock import Clock
from tests.support.jobs import FAILURE, GPU, SUCCESS, new_job
from tests.support.keys import check_keys
from tests.support.valkey import Valkey

NAMES = [f"job-{n}" for n in range(4)]
IDS = st.sampled_from(NAMES)
QUEUES = st.sampled_from(["free.h100", "pro.a100"])
SEEN = st.none() | st.integers(0, 2)
VICTIM = st.none() | st.tuples(IDS, st.integers(1, 2))
WORKERS = st.sampled_from(["w0", "w1"])
BUILDS = st.sampled_from(["", "", "b1", "b2"])
SECONDS = st.sampled_from([0.0, 0.000001, 1.0, 2.5, 10.0])
MAYBE = st.booleans()
BACK = st.sampled_from([0, 0, 0, 1, 1, 2, 3, 7])  # the newest ticket or lease, or an older one
RETENTION_S = 1e6  # nothing expires during one run: Redis's TTLs know no test clock


class StoreMachine(RuleBasedStateMachine):
    """The verbs, each called on both stores with the same arguments, some of them twice."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.clock = Clock()
        self.prefix = f"machine-{uuid.uuid4().hex[:8]}:"
        self.redis = RedisStore.from_url(
            url,
            retention_s=RETENTION_S,
            prefix=self.prefix,
            clock=self.clock,
        )
        self.memory = MemoryStore(self.clock, retention_s=RETENTION_S)
        self.tickets = [Ticket("nobody", 1, "free.h100")]
        self.leases = [("nobody", 1, "token")]
        self.ticks = itertools.count(1)
        self.seen: dict[str, tuple[int, int]] = {}

    # -- calling both

    def both(self, call: Callable[[Store], Any]) -> Any:
        answers = [_answer(call, store) for store in (self.memory, self.redis)]
        assert answers[0] == answers[1]
        return answers[0]

    def twice(self, repeat: bool, call: Callable[[Store, str], Any]) -> Any:
        """With an op. A repeat must get the first answer and change nothing (as the invariants see)."""
        token = uuid.uuid4().hex
        answer = self.both(lambda store: call(store, token))
        if repeat and not isinstance(answer, type):
            assert self.both(lambda store: call(store, token)) == answer
        return answer

    # -- the life of a job

    @initialize(patience=st.none() | SECONDS)
    def begin_with_jobs_in_every_place(self, patience: float | None) -> None:
        """One runs, one is queued, one waits; or they are late already."""
        for name in NAMES[:3]:
            self.submit(name, "free.h100", "", "a", False, None, patience, True)
        self.release("free.h100", 2, True)
        self.claim(1, 2.5, 0, "w0", "", True)

    @rule(
        name=IDS,
        queue=QUEUES,
        key=st.sampled_from(["", "k1", "k1", "k2"]),
        body=st.sampled_from(["a", "a", "a", "b"]),
        alias=MAYBE,
        wait=st.none() | SECONDS,
        patience=st.none() | SECONDS,
        repeat=MAYBE,
        delay_s=SECONDS,
    )
    def submit(
        self,
        name: str,
        queue: str,
        key: str,
        body: str,
        alias: bool,
        wait: Any,
        patience: Any,
        repeat: bool,
        delay_s: float = 0.0,
    ) -> None:
        times = {
            "not_before": 0.0 if wait is None else self.clock.now + wait,
            "deadline": 0.0 if patience is None else self.clock.now + patience,
        }
        tenant = "a:b" if key == "k2" else "acme"
        job = new_job(
            name,
            queue=queue,
            body=body,
            tier=queue.split(".")[0],
            idempotency_key=key,
            tenant=tenant,
            canvas={"of": name},
            **times,
        )
        job = replace(job, delay_s=delay_s, charge_s=delay_s, work_s=delay_s)
        self.twice(repeat, lambda store, op: store.submit(job, op=op, alias=alias))

    @rule(queue=QUEUES, quota=st.sampled_from([0, 1, 2, 4]), repeat=MAYBE)
    def release(self, queue: str, quota: int, repeat: bool) -> None:
        quotas = {queue: quota, "pro.a100" if queue == "free.h100" else "free.h100": 1}
        self.twice(repeat, lambda store, op: store.set_quotas(quotas, op=op))
        self.tickets += self.twice(repeat, lambda store, op: store.release(queue, op=op))

    @rule(
        back=BACK,
        lease_s=SECONDS,
        other=st.sampled_from([0, 0, 0, 1]),
        worker=WORKERS,
        build=BUILDS,
        repeat=MAYBE,
    )
    def claim(self, back: int, lease_s: float, other: int, worker: str, build: str, repeat: bool) -> None:
        ticket = self.tickets[-1 - back % len(self.tickets)]
        ticket = replace(ticket, format=ticket.format + other)
        answer = self.twice(
            repeat,
            lambda store, op: store.claim(ticket, worker=worker, token=op, lease_s=lease_s, build=build),
        )
        if isinstance(answer, Lease):
            self.leases.append((answer.job.id, answer.attempt, answer.token))
        else:
            assert isinstance(answer, ClaimRefused)

    def lease(self, back: int) -> tuple[str, int, str]:
        return self.leases[-1 - back % len(self.leases)]

    @rule(
        back=BACK,
        step=st.integers(0, 8),
        lease_s=SECONDS,
        lost=st.sampled_from([0, 0, 1]),
    )
    def renew(self, back: int, step: int, lease_s: float, lost: int) -> None:
        """``lost`` renews an attempt that the record does not know, as after a fail-over."""
        name, attempt, token = self.lease(back)
        fence = (name, attempt + lost, token if not lost else f"{token}-{back}")
        order = self.both(
            lambda store: store.renew(
                *fence, lease_s=lease_s, step=step, steps=8, phase="denoise", loading_s=0.25, worker="w0"
            )
        )
        if lost and order == "":
            self.leases.append(fence)

    @rule(back=BACK, good=MAYBE, repeat=MAYBE)
    def finish(self, back: int, good: bool, repeat: bool) -> None:
        fence, outcome = self.lease(back), SUCCESS if good else FAILURE
        self.twice(repeat, lambda store, op: store.finish(*fence, outcome, op=op))

    @rule(back=BACK, preempted=MAYBE, repeat=MAYBE)
    def hand_back(self, back: int, preempted: bool, repeat: bool) -> None:
        fence = self.lease(back)
        self.twice(
            repeat,
            lambda store, op: store.hand_back(
                *fence, reason="preempted", op=op, spent=Spent(0.2, 0.1, 0.3), preempted=preempted
            ),
        )

    @rule(
        back=BACK, step=st.integers(1, 8), build=BUILDS, version=st.sampled_from([1, 1, 1, 2]), repeat=MAYBE
    )
    def keep_checkpoint(self, back: int, step: int, build: str, version: int, repeat: bool) -> None:
        fence = self.lease(back)
        kept = Checkpoint(step, f"checkpoints/{step}", "abc", 17, build, version)
        self.twice(repeat, lambda store, op: store.keep_checkpoint(*fence, kept, useful_s=0.5, op=op))

    @rule(back=BACK, given_up=MAYBE, exact=MAYBE, repeat=MAYBE)
    def start_from(self, back: int, given_up: bool, exact: bool, repeat: bool) -> None:
        """At the newest checkpoint, at the one before, or at 0."""
        fence = self.lease(back)
        (job,) = self.memory.get_many([fence[0]])
        kept = [point.step for point in (job.checkpoint, job.checkpoint_before) if point] if job else []
        step = 0 if given_up or not kept else kept[-1]
        self.twice(
            repeat,
            lambda store, op: store.start_from(*fence, step=step, exact=exact, reason="because", op=op),
        )

    @rule(back=BACK, repeat=MAYBE)
    def decline(self, back: int, repeat: bool) -> None:
        fence = self.lease(back)
        self.twice(repeat, lambda store, op: store.decline(*fence, reason="no storage", op=op))

    @rule(back=BACK, repeat=MAYBE)
    def order(self, back: int, repeat: bool) -> None:
        name, attempt, _ = self.lease(back)
        self.twice(repeat, lambda store, op: store.order(name, attempt, "yield", reason="pro", op=op))

    @rule(name=IDS, repeat=MAYBE)
    def cancel(self, name: str, repeat: bool) -> None:
        self.twice(repeat, lambda store, op: store.cancel(name, reason="100% sure", op=op))

    # -- controllers

    @rule(seconds=SECONDS)
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(max_crashes=st.integers(1, 3), limit=st.integers(1, 3), gap_s=SECONDS, repeat=MAYBE)
    def reap(self, max_crashes: int, limit: int, gap_s: float, repeat: bool) -> None:
        self.twice(
            repeat,
            lambda store, op: store.reap(
                max_crashes=max_crashes, limit=limit, lease_s=2.5, gap_s=gap_s, op=op
            ),
        )

    @rule(back=BACK, max_crashes=st.integers(1, 3), repeat=MAYBE)
    def lose(self, back: int, max_crashes: int, repeat: bool) -> None:
        fence = self.lease(back)
        self.twice(
            repeat,
            lambda store, op: store.lose(*fence, reason="its child died", max_crashes=max_crashes, op=op),
        )

    @rule(name=IDS, worker=WORKERS, seen=SEEN, victim=VICTIM, repeat=MAYBE)
    def assign(self, name: str, worker: str, seen: int | None, victim: Any, repeat: bool) -> None:
        known: Any = {"ticket": seen, "victim": victim, "reason": "free"}
        ticket = self.twice(repeat, lambda store, op: store.assign(name, f"direct.{worker}", op=op, **known))
        if ticket is not None and not isinstance(ticket, type):
            self.tickets.append(ticket)

    @rule(worker=WORKERS, action=st.sampled_from(["", "cordoned", "draining"]), repeat=MAYBE)
    def order_gpu(self, worker: str, action: str, repeat: bool) -> None:
        order = GpuOrder(action, who="me", why="dust", give_up_at=self.clock.now + 1.5) if action else None
        self.twice(repeat, lambda store, op: store.order_gpu(worker, order, op=op))

    @rule(name=IDS, from_start=MAYBE, repeat=MAYBE)
    def requeue(self, name: str, from_start: bool, repeat: bool) -> None:
        self.twice(
            repeat, lambda store, op: store.requeue(name, from_start=from_start, reason="again", op=op)
        )

    @rule(name=IDS)
    def erase(self, name: str) -> None:
        self.twice(False, lambda store, op: store.erase(name, op=op))

    @rule(queue=QUEUES, older_s=SECONDS, repeat=MAYBE)
    def heal(self, queue: str, older_s: float, repeat: bool) -> None:
        self.twice(repeat, lambda store, op: store.heal(queue, older_s=older_s, op=op))

    @rule(limit=st.integers(1, 3), repeat=MAYBE)
    def wake(self, limit: int, repeat: bool) -> None:
        self.twice(repeat, lambda store, op: store.wake(limit=limit, op=op))

    @rule(name=IDS, queue=QUEUES, repeat=MAYBE)
    def reroute(self, name: str, queue: str, repeat: bool) -> None:
        gpu_class = queue.split(".")[1]
        self.twice(repeat, lambda store, op: store.reroute(name, gpu_class=gpu_class, queue=queue, op=op))

    @rule(older_s=SECONDS, repeat=MAYBE)
    def hasten(self, older_s: float, repeat: bool) -> None:
        self.twice(repeat, lambda store, op: store.hasten({"free": older_s, "pro": 10.0}, op=op))
        self.twice(repeat, lambda store, op: store.keep_plan({"older_s": older_s}, op=op))

    @rule(back=st.integers(0, 2), busy_s=SECONDS, done=MAYBE, repeat=MAYBE)
    def tick(self, back: int, busy_s: float, done: bool, repeat: bool) -> None:
        number, token = next(self.ticks) - back, uuid.uuid4().hex
        for _ in range(1 + repeat):
            self.both(lambda store: store.begin_tick("release", number, token=token, busy_s=busy_s))
        if done:
            self.both(lambda store: store.end_tick("release", number, token=token, report={"n": number}))
            self.both(lambda store: store.take_urgent())

    # -- delivery and GPUs

    @rule(
        name=IDS,
        token=st.sampled_from("ab"),
        busy_s=SECONDS,
        part=st.sampled_from(["result", "chord"]),
        late=MAYBE,
    )
    def deliver(self, name: str, token: str, busy_s: float, part: str, late: bool) -> None:
        if self.both(lambda store: store.lock_delivery(name, token=token, busy_s=busy_s)):
            names = [name] if late else [name, *self.memory.aliases(name)]
            self.both(lambda store: store.mark_part(name, f"{name}:{part}"))
            self.both(lambda store: store.mark_delivered(name, names=names, token=token))

    @rule(index=st.integers(0, 2), leave=MAYBE)
    def beat_gpu(self, index: int, leave: bool) -> None:
        gpu = replace(GPU, name=f"h100-{index}@a", index=index)
        self.both(lambda store: store.drop_gpu(gpu.name) if leave else store.beat_gpu(gpu, ttl_s=1e5))

    # -- what both must show, and what must hold

    @invariant()
    def both_show_the_same(self) -> None:
        self.both(lambda store: store.get_many(NAMES))
        self.both(lambda store: (store.counts(), store.backlog(), store.published()))
        self.both(lambda store: sorted(store.undelivered()))
        self.both(lambda store: sorted(job.id for job in store.running()))
        self.both(lambda store: sorted(job.id for job in store.parked()))

    @rule(name=IDS, queue=QUEUES)
    def look_closely(self, name: str, queue: str) -> None:
        self.both(lambda store: (store.gpus(), store.gpu_orders(), store.erasing()))
        self.both(lambda store: store.attempts(name))
        self.both(lambda store: (store.backlog_jobs(queue), store.plans(), store.keyed("acme", "k1")))
        tier, place = queue.split(".")[0], self.clock.now + 2.5
        self.both(lambda store: (store.before(tier, place), store.turn(tier, "a:b")))
        self.both(lambda store: (store.resolve(name), store.events(name)))
        self.both(lambda store: (store.aliases(name), store.delivered_parts(name)))

    @rule(
        state=st.none() | st.sampled_from(State),
        tenant=st.sampled_from(["", "acme", "a:b"]),
        limit=st.integers(1, 4),
    )
    def list_pages(self, state: State | None, tenant: str, limit: int) -> None:
        cursor = ""
        while True:
            look = methodcaller("list_jobs", state=state, tenant=tenant, limit=limit, cursor=cursor)
            cursor = self.both(look).cursor
            if not cursor:
                break

    @invariant()
    def every_job_stands_where_its_state_says(self) -> None:
        jobs = self.memory.list_jobs(limit=100).jobs
        for job in jobs:
            assert (job.id in self.memory.backlog_jobs(job.queue)) == (job.state is State.PENDING)
            assert (job.id in self.memory.undelivered()) == (job.state in TERMINAL and not job.delivered)
            assert (job.lease_until > 0) == (job.state is State.RUNNING)
            before = self.seen.get(job.id, (0, 0))
            assert (job.ticket, job.attempt) >= before
            self.seen[job.id] = (job.ticket, job.attempt)
        queued = [job for job in jobs if job.state is State.QUEUED]
        assert sum(self.memory.published().values()) == len(queued)

    def teardown(self) -> None:
        for name in NAMES:
            self.both(methodcaller("events", name))
        client = self.redis._client
        check_keys(client, self.prefix)
        keys = list(client.scan_iter(f"{self.prefix}*", count=1000))
        if keys:
            client.delete(*keys)
        self.redis.close()


def _answer(call: Callable[[Store], Any], store: Store) -> Any:
    """The answer, or the class of the error."""
    try:
        return call(store)
    except errors.CallsheetError as error:
        return type(error)


def test_both_stores_lead_the_same_life(valkey: Valkey) -> None:
    run_state_machine_as_test(
        lambda: StoreMachine(valkey.url),  # type: ignore[arg-type] # any factory will do
        settings=settings(
            max_examples=30,
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
