"""Contract of both stores: looks of the controllers that are asked for, and ticks that run once more."""

from __future__ import annotations

from typing import Any

from callsheet.store import rules
from callsheet.store.protocol import Store
from tests.support.clock import Clock
from tests.support.jobs import new_job, op


def urgent(store: Store, **changes: Any) -> bool:
    return store.submit(new_job(queue="pro.h100", tier="pro", **changes), op=op()).urgent


def test_a_look_is_asked_for_once_until_it_is_taken(store: Store, clock: Clock) -> None:
    assert [urgent(store) for _ in range(3)] == [True, False, False]
    store.take_urgent()
    assert [urgent(store) for _ in range(2)] == [True, False]


def test_a_look_that_never_came_is_asked_for_again(store: Store, clock: Clock) -> None:
    assert urgent(store)
    clock.advance(rules.URGENT_TTL_S - 0.1)
    assert not urgent(store)
    clock.advance(0.1)
    assert urgent(store)


def test_only_a_job_that_may_preempt_asks_and_only_when_it_waits(store: Store, clock: Clock) -> None:
    assert not store.submit(new_job(tier="free"), op=op()).urgent
    assert not urgent(store, not_before=clock.now + 9)
    assert urgent(store)


def test_a_submit_repeated_asks_again_for_the_same_look(store: Store) -> None:
    """Its reply was lost: whoever submits has not asked yet."""
    job, token = new_job(queue="pro.h100", tier="pro"), op()
    assert [store.submit(job, op=token).urgent for _ in range(2)] == [True, True]


def test_a_tick_that_was_missed_is_run_once_more(store: Store) -> None:
    assert store.begin_tick("rebalance", 1, token="a", busy_s=5)
    assert not store.begin_tick("rebalance", 2, token="b", busy_s=5)
    assert store.end_tick("rebalance", 1, token="a", report={})
    assert store.end_tick("rebalance", 1, token="a", report={})  # its reply was lost
    assert store.begin_tick("rebalance", 2, token="c", busy_s=5)
    assert not store.end_tick("rebalance", 2, token="c", report={})


def test_who_lost_its_tick_runs_nothing_once_more(store: Store, clock: Clock) -> None:
    store.begin_tick("rebalance", 1, token="a", busy_s=5)
    store.begin_tick("rebalance", 2, token="b", busy_s=5)
    clock.advance(5)
    assert store.begin_tick("rebalance", 3, token="c", busy_s=5)
    assert not store.end_tick("rebalance", 1, token="a", report={})
    assert not store.end_tick("rebalance", 3, token="c", report={})


def test_a_tick_begun_twice_under_its_token_leaves_no_note(store: Store) -> None:
    for _ in range(2):
        assert store.begin_tick("rebalance", 1, token="a", busy_s=5)
    assert not store.end_tick("rebalance", 1, token="a", report={})
