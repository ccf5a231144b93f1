"""Contract of both stores: records, lists, counts, histories, GPUs, facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callsheet import errors
from callsheet.records.states import State
from callsheet.store.protocol import Page, Store
from callsheet.store.rules import EVENTS_FIRST, EVENTS_MAX
from tests.support.clock import Clock
from tests.support.jobs import GPU, QUEUE, ended, kinds, op, queued, renew, running, submitted

# -- records and lists


def test_get_many_keeps_the_order_and_marks_the_unknown(store: Store) -> None:
    a, b = submitted(store), submitted(store)
    found = store.get_many([b, "nobody", a, "bad:id", b])
    assert [job and job.id for job in found] == [b, None, a, None, b]
    assert store.get_many([]) == []
    assert store.get_many(["bad id"]) == [None]


def walk(store: Store, limit: int, **filters: object) -> list[str]:
    ids, cursor = [], ""
    while True:
        page = store.list_jobs(limit=limit, cursor=cursor, **filters)  # type: ignore[arg-type]
        assert len(page.jobs) <= limit
        ids += [job.id for job in page.jobs]
        cursor = page.cursor
        if not cursor:
            return ids


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
def test_lists_are_newest_first_and_paged(store: Store, clock: Clock, limit: int) -> None:
    ids = [submitted(store) for _ in range(3)]
    clock.advance(1)
    ids += [submitted(store, not_before=clock.now + 60) for _ in range(3)]
    assert walk(store, limit) == ids[::-1]


def test_lists_by_state_and_tenant(store: Store) -> None:
    done = ended(store, tenant="acme")
    waiting = submitted(store, tenant="acme")
    other = submitted(store, tenant="a:b c")
    assert walk(store, 5, state=State.PENDING) == [other, waiting]
    assert walk(store, 5, tenant="acme") == [waiting, done]
    assert walk(store, 1, tenant="acme", state=State.SUCCEEDED) == [done]
    assert walk(store, 5, tenant="a:b c") == [other]
    assert walk(store, 5, tenant="nobody") == []
    assert walk(store, 5, state=State.FAILED) == []


def test_a_page_ends_where_the_jobs_end(store: Store) -> None:
    assert store.list_jobs() == Page(jobs=(), cursor="")
    for _ in range(2):
        submitted(store)
    assert store.list_jobs(limit=2).cursor == ""
    assert store.list_jobs(limit=1).cursor != ""


def test_a_page_is_not_disturbed_by_new_jobs(store: Store) -> None:
    ids = [submitted(store) for _ in range(4)]
    page = store.list_jobs(limit=2)
    submitted(store)
    assert [job.id for job in store.list_jobs(limit=2, cursor=page.cursor).jobs] == [ids[1], ids[0]]


def test_a_long_list_is_read_in_pieces(store: Store) -> None:
    """More jobs than one piece of the index, and the wanted ones at its far end."""
    first = submitted(store, tenant="t")
    for _ in range(205):
        submitted(store, tenant="t", not_before=9e9)
    assert walk(store, 300, tenant="t")[-1] == first
    assert walk(store, 5, tenant="t", state=State.PENDING) == [first]


@pytest.mark.parametrize("cursor", ["x", "12;DROP"])
def test_a_made_up_cursor_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(errors.RequestError, match="cursor"):
        store.list_jobs(cursor=cursor)


def test_counts_follow_the_jobs(store: Store, clock: Clock) -> None:
    assert store.counts() == dict.fromkeys(State, 0)
    ended(store)
    running(store)
    queued(store)
    submitted(store)
    submitted(store, not_before=clock.now + 5)
    expected = dict.fromkeys(State, 0) | {
        State.SUCCEEDED: 1,
        State.RUNNING: 1,
        State.QUEUED: 1,
        State.PENDING: 1,
        State.HELD: 1,
    }
    assert store.counts() == expected


def test_backlog_jobs_is_bounded(store: Store) -> None:
    ids = [submitted(store) for _ in range(3)]
    assert store.backlog_jobs(QUEUE, limit=2) == ids[:2]
    assert store.backlog_jobs(QUEUE, limit=0) == []
    assert store.backlog_jobs("no.such") == []


# -- histories


def test_a_history_tells_who_did_what(store: Store, clock: Clock) -> None:
    lease = running(store)
    clock.advance(1.5)
    store.hand_back(lease.job.id, 1, lease.token, reason="preempted for job x", op=op())
    last = store.events(lease.job.id)[-1]
    assert (last.at, last.kind, last.attempt, last.worker, last.reason) == (
        clock.now,
        "handed-back",
        1,
        "h100-0@a",
        "preempted for job x",
    )


def test_a_history_keeps_its_beginning_and_the_newest(store: Store) -> None:
    job_id = submitted(store)
    for n in range(EVENTS_MAX + 5):
        store.reroute(job_id, gpu_class="a100", queue=f"free.a{n}", op=op())
    found = store.events(job_id)
    assert len(found) == EVENTS_MAX
    assert found[0].kind == "submitted"
    moves = [event.reason.rpartition("free.a")[2] for event in found[1:]]
    last = EVENTS_MAX + 5
    kept = [*range(EVENTS_FIRST - 1), *range(last - (EVENTS_MAX - EVENTS_FIRST), last)]
    assert moves == [str(n) for n in kept]


def test_renewals_are_no_history(store: Store) -> None:
    lease = running(store)
    renew(store, lease)
    assert kinds(store, lease.job.id) == ["submitted", "released", "claimed"]


# -- GPUs


def test_a_gpu_reads_back_with_the_time_of_its_heartbeat(store: Store, clock: Clock) -> None:
    store.beat_gpu(GPU, ttl_s=60)
    assert store.gpus() == [replace(GPU, seen_at=clock.now)]


def test_a_heartbeat_replaces_what_was_known(store: Store, clock: Clock) -> None:
    store.beat_gpu(GPU, ttl_s=60)
    idle = replace(GPU, queues=(), resident=(), job_id="", step=0, steps=0, declared=False)
    store.beat_gpu(idle, ttl_s=60)
    assert store.gpus() == [replace(idle, seen_at=clock.now)]


def test_gpus_come_by_name_and_leave_in_order(store: Store) -> None:
    for name in ("c", "a", "b"):
        store.beat_gpu(replace(GPU, name=name), ttl_s=60)
    store.drop_gpu("b")
    store.drop_gpu("nobody")
    assert [gpu.name for gpu in store.gpus()] == ["a", "c"]


# -- the server


def test_now_is_the_time_of_the_store(store: Store, clock: Clock) -> None:
    clock.advance(0.1234567)
    assert store.now() == pytest.approx(clock.now, abs=1e-6)


def test_ping_tells_the_facts(store: Store) -> None:
    facts = store.ping()
    assert set(facts) == {"version", "appendonly", "maxmemory_policy", "used_memory"}
    assert facts["appendonly"] == "no"
    assert facts["maxmemory_policy"] == "noeviction"
    store.close()
