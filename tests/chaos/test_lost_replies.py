"""A verb took effect and its reply was lost: sent again, it changes nothing and gets the first answer.

Each verb is sent through a proxy that drops the replies of its script, and by a twin that is left in peace;
afterwards both have the same answers, and their servers hold the same data, key by key.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from callsheet.records.gpus import GpuOrder
from callsheet.records.jobs import NOTHING, Job, Ticket
from callsheet.store.redis_store import RedisStore
from tests.support.clock import Clock
from tests.support.jobs import FAILURE, GPU, QUEUE, SUCCESS, checkpoint, new_job
from tests.support.proxy import Proxy
from tests.support.twins import Twin, everything
from tests.support.valkey import Valkey

pytestmark = pytest.mark.chaos

OP = "the-verb"
FENCE = ("film", 1, "token")
TICKET = Ticket("film", 1, QUEUE)
LOST = 2  # replies in a row

Prepare = Callable[[Twin, Clock], object]
Act = Callable[[RedisStore], object]


@dataclass(frozen=True)
class Verb:
    """How to come to the point, and the verb itself."""

    prepare: Prepare
    act: Act


def renewed(store: RedisStore) -> object:
    return store.renew(*FENCE, lease_s=7.0, step=3, steps=8, phase="denoise", loading_s=1.0, worker="w")


def reaped(store: RedisStore) -> object:
    return store.reap(max_crashes=3, lease_s=3.0, gap_s=1e9, op=OP)


def failed(twin: Twin) -> None:
    """An ended job that can be requeued, delivered already."""
    lease = twin.kept(2, 4)
    assert twin.store.finish("film", 1, lease.token, FAILURE, op=twin.op())
    assert twin.store.mark_delivered("film", names=["film"], token="d")


def forgot_its_claim(twin: Twin) -> None:
    """The holder of attempt 1 renews, and the record knows of no attempt, as after a fail-over."""
    other = twin.running("other")
    assert twin.store.renew("other", 1, other.token, lease_s=9.0, step=1, steps=8, phase="") == ""
    twin.queued()


def under_way(twin: Twin) -> None:
    """A tick during which another one came."""
    assert twin.store.begin_tick("rebalance", 1, token=OP, busy_s=9.0)
    assert not twin.store.begin_tick("rebalance", 2, token="other", busy_s=9.0)


def after(seconds: float, *begin: Callable[[Twin], object]) -> Prepare:
    """So long after these."""

    def prepare(twin: Twin, clock: Clock) -> None:
        for act in begin:
            act(twin)
        clock.advance(seconds)

    return prepare


VERBS: dict[str, Verb] = {
    "submit": Verb(
        lambda twin, _: twin.submitted("first"),
        lambda store: store.submit(new_job("film", idempotency_key="k", tier="pro"), op=OP),
    ),
    "submit and release": Verb(
        lambda twin, _: (twin.submitted("first"), twin.quotas()),
        lambda store: store.submit(new_job("film", tier="pro"), op=OP, release=True),
    ),
    "submit a known key": Verb(
        lambda twin, _: twin.submitted("first", idempotency_key="k"),
        lambda store: store.submit(new_job("film", idempotency_key="k"), op=OP, alias=True),
    ),
    "release": Verb(
        lambda twin, _: (twin.submitted("a"), twin.submitted("b"), twin.quotas()),
        lambda store: store.release(QUEUE, op=OP),
    ),
    "claim": Verb(
        lambda twin, _: twin.queued(),
        lambda store: store.claim(TICKET, worker="w", token="token", lease_s=9.0),
    ),
    "claim of another's job": Verb(
        lambda twin, _: twin.running(),
        lambda store: store.claim(TICKET, worker="w", token="late", lease_s=9.0),
    ),
    "renew": Verb(lambda twin, _: twin.running(), renewed),
    "renew an adopted job": Verb(lambda twin, _: forgot_its_claim(twin), renewed),
    "keep_checkpoint": Verb(
        lambda twin, _: twin.kept(1, 2),
        lambda store: store.keep_checkpoint(*FENCE, checkpoint(3), useful_s=2.0, op=OP),
    ),
    "start_from": Verb(
        lambda twin, _: twin.kept(1, 2),
        lambda store: store.start_from(*FENCE, step=1, exact=False, reason="r", op=OP),
    ),
    "start_from 0": Verb(
        lambda twin, _: twin.kept(1, 2),
        lambda store: store.start_from(*FENCE, step=0, exact=True, reason="r", op=OP),
    ),
    "decline": Verb(
        lambda twin, _: (
            twin.running(),
            twin.store.order("film", 1, "yield", reason="pro", op=twin.op()),
        ),
        lambda store: store.decline(*FENCE, reason="no storage", op=OP),
    ),
    "hand_back": Verb(
        lambda twin, _: twin.kept(2),
        lambda store: store.hand_back(*FENCE, reason="yields", spent=NOTHING, op=OP),
    ),
    "finish": Verb(lambda twin, _: twin.running(), lambda store: store.finish(*FENCE, SUCCESS, op=OP)),
    "lose": Verb(
        lambda twin, _: twin.kept(2), lambda store: store.lose(*FENCE, reason="died", max_crashes=3, op=OP)
    ),
    "lose at the last crash": Verb(
        lambda twin, _: twin.kept(2), lambda store: store.lose(*FENCE, reason="died", max_crashes=1, op=OP)
    ),
    "cancel": Verb(lambda twin, _: twin.kept(2), lambda store: store.cancel("film", reason="r", op=OP)),
    "requeue": Verb(
        lambda twin, _: failed(twin),
        lambda store: store.requeue("film", from_start=False, reason="r", op=OP),
    ),
    "requeue from the start": Verb(
        lambda twin, _: failed(twin),
        lambda store: store.requeue("film", from_start=True, reason="r", op=OP),
    ),
    "erase": Verb(lambda twin, _: failed(twin), lambda store: _kept_of(store.erase("film", op=OP))),
    "assign": Verb(
        lambda twin, _: twin.queued(), lambda store: store.assign("film", "direct.w", reason="r", op=OP)
    ),
    "assign with a victim": Verb(
        lambda twin, _: (twin.running(), twin.submitted("heir")),
        lambda store: store.assign("heir", "direct.w", reason="r", ticket=0, victim=("film", 1), op=OP),
    ),
    "reap": Verb(after(11, lambda twin: twin.kept(2)), reaped),
    "heal": Verb(
        after(9, lambda twin: twin.queued()),
        lambda store: store.heal(QUEUE, older_s=5.0, op=OP),
    ),
    "wake": Verb(
        after(
            6,
            lambda twin: twin.submitted("held", not_before=Clock().now + 5),
            lambda twin: twin.submitted("late", deadline=Clock().now + 5),
        ),
        lambda store: store.wake(op=OP),
    ),
    "reroute": Verb(
        lambda twin, _: twin.submitted(),
        lambda store: store.reroute("film", gpu_class="a100", queue="free.a100", op=OP),
    ),
    "hasten": Verb(
        after(61, lambda twin: twin.delayed("film")),
        lambda store: store.hasten({"free": 60.0}, op=OP),
    ),
    "keep_plan": Verb(
        lambda twin, _: twin.store.keep_plan({"n": 1}, op=twin.op()),
        lambda store: store.keep_plan({"n": 2}, op=OP),
    ),
    "order": Verb(
        lambda twin, _: twin.running(), lambda store: store.order("film", 1, "yield", reason="pro", op=OP)
    ),
    "order_gpu": Verb(
        lambda twin, _: twin.store.beat_gpu(GPU, ttl_s=60),
        lambda store: store.order_gpu(GPU.name, GpuOrder("cordoned", "hot", "me"), op=OP),
    ),
    "lift a GPU's order": Verb(
        lambda twin, _: twin.store.order_gpu(GPU.name, GpuOrder("cordoned", "hot", "me"), op=twin.op()),
        lambda store: store.order_gpu(GPU.name, None, op=OP),
    ),
    "set_quotas": Verb(lambda twin, _: twin.quotas(), lambda store: store.set_quotas({"pro.a100": 2}, op=OP)),
    "lock_delivery": Verb(
        lambda twin, _: twin.store.finish(*_fence(twin), SUCCESS, op=twin.op()),
        lambda store: store.lock_delivery("film", token=OP, busy_s=9.0),
    ),
    "mark_part": Verb(
        lambda twin, _: twin.store.finish(*_fence(twin), SUCCESS, op=twin.op()),
        lambda store: store.mark_part("film", "film:result"),
    ),
    "mark_delivered": Verb(
        lambda twin, _: twin.store.finish(*_fence(twin), SUCCESS, op=twin.op()),
        lambda store: store.mark_delivered("film", names=["film"], token=OP),
    ),
    "begin_tick": Verb(lambda *_: None, lambda store: store.begin_tick("rebalance", 1, token=OP, busy_s=9.0)),
    "end_tick": Verb(
        lambda twin, _: under_way(twin),
        lambda store: store.end_tick("rebalance", 1, token=OP, report={"released": 1}),
    ),
    "beat_gpu": Verb(lambda *_: None, lambda store: store.beat_gpu(GPU, ttl_s=60)),
}


def _fence(twin: Twin) -> tuple[str, int, str]:
    lease = twin.running()
    return lease.job.id, lease.attempt, lease.token


def _kept_of(job: Job) -> object:
    """An erasure reads the record first: only its end is compared."""
    return job.id


@pytest.fixture
def proxy(valkey: Valkey) -> Iterator[Proxy]:
    with Proxy(valkey.port) as found:
        yield found


@pytest.fixture
def prefix() -> str:
    return f"lost-{uuid.uuid4().hex[:8]}"


def open_twin(port: int, prefix: str, clock: Clock) -> Twin:
    return Twin(
        RedisStore.from_url(f"redis://127.0.0.1:{port}/0", retention_s=60, prefix=prefix, clock=clock)
    )


@pytest.mark.parametrize("name", VERBS)
def test_the_repeated_verb_gets_the_first_answer_and_changes_nothing(
    valkey: Valkey, proxy: Proxy, prefix: str, name: str
) -> None:
    verb, answers, kept = VERBS[name], [], []
    for port, losses in ((valkey.port, 0), (proxy.port, LOST)):
        clock, own = Clock(), f"{prefix}-{losses}:"
        twin = open_twin(port, own, clock)
        verb.prepare(twin, clock)
        proxy.lose_script_replies(losses)
        answers.append(verb.act(twin.store))
        if losses:  # and once more, as a caller does who was told Unreachable
            answers.append(verb.act(twin.store))
        with valkey.client() as client:
            kept.append(everything(client, own))
        twin.store.close()
    assert proxy.lost == LOST
    assert answers[0] == answers[1] == answers[2]
    assert kept[0] == kept[1]
