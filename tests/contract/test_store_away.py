"""The store was away, so that nobody could renew: no healthy attempt is reaped for that, in both stores."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from callsheet.store.protocol import Lease, Store
from tests.support.clock import Clock
from tests.support.jobs import QUEUE, op, queued, reap, renew, running

GAP_S = 1.0
LEASE_S = 3.0  # as ``reap`` of the support has it


def tick(store: Store, number: int) -> None:
    assert store.begin_tick("control", number, token=op(), busy_s=0.0)


def first_words(store: Store, leases: list[Lease]) -> dict[str, Callable[[], object]]:
    """What may be the first that the store answers when it is back."""
    ticket = queued(store, queue="free.a100")
    return {
        "reap": lambda: None,
        "tick": lambda: tick(store, 2),
        "renew": lambda: renew(store, leases[0], lease_s=LEASE_S),
        "claim": lambda: store.claim(ticket, worker="w", token=op(), lease_s=LEASE_S),
    }


@pytest.mark.parametrize("first", ["reap", "tick", "renew", "claim"])
def test_whoever_comes_first_after_an_absence_nobody_is_reaped(
    store: Store, clock: Clock, first: str
) -> None:
    leases = [running(store, lease_s=LEASE_S) for _ in range(2)]
    word = first_words(store, leases)[first]
    tick(store, 1)
    assert reap(store, gap_s=GAP_S) == []
    clock.advance(6.0)
    word()
    assert reap(store, gap_s=GAP_S) == []
    clock.advance(0.9)
    assert reap(store, gap_s=GAP_S) == []
    assert [renew(store, lease, lease_s=LEASE_S) for lease in leases] == ["", ""]


@pytest.mark.parametrize("first", ["reap", "tick", "renew"])
def test_who_does_not_come_back_is_reaped_a_lease_later(store: Store, clock: Clock, first: str) -> None:
    alive, dead = (running(store, lease_s=LEASE_S) for _ in range(2))
    word = first_words(store, [alive])[first]
    reap(store, gap_s=GAP_S)
    clock.advance(6.0)
    word()
    for _ in range(3):
        assert reap(store, gap_s=GAP_S) == []
        renew(store, alive, lease_s=LEASE_S)
        clock.advance(0.9)
    renew(store, alive, lease_s=LEASE_S)
    clock.advance(0.4)
    assert reap(store, gap_s=GAP_S) == [dead.job.id]


def test_a_silence_within_the_bound_is_no_absence(store: Store, clock: Clock) -> None:
    lease = running(store, lease_s=LEASE_S)
    reap(store, gap_s=GAP_S)
    for number in range(1, 4):
        clock.advance(1.0)
        tick(store, number)
    assert reap(store, gap_s=GAP_S) == [lease.job.id]


def test_a_store_that_is_asked_seldom_reaps_all_the_same(store: Store, clock: Clock) -> None:
    lease = running(store, lease_s=LEASE_S)
    found = []
    for _ in range(4):
        clock.advance(10.0)
        found.append(reap(store, gap_s=GAP_S))
    assert found == [[], [], [lease.job.id], []]
    assert store.backlog() == {QUEUE: 1}
