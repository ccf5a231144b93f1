"""Contract of both stores: many callers at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from callsheet.records.states import State
from callsheet.store.protocol import ClaimRefused, Lease, Store
from tests.support.jobs import QUEUE, new_job, op, queued, submitted

T = TypeVar("T")


def at_once(count: int, call: Callable[[int], T]) -> list[T]:
    with ThreadPoolExecutor(max_workers=16) as pool:
        return list(pool.map(call, range(count)))


def test_200_submissions_with_one_key_are_one_job(store: Store) -> None:
    answers = at_once(200, lambda n: store.submit(new_job(f"f{n}", idempotency_key="k"), op=op()))
    assert len({answer.job_id for answer in answers}) == 1
    assert sum(answer.created for answer in answers) == 1
    assert store.counts()[State.PENDING] == 1


def test_200_aliases_of_one_job_are_all_kept(store: Store) -> None:
    answers = at_once(200, lambda n: store.submit(new_job(f"f{n}", idempotency_key="k"), op=op(), alias=True))
    first = answers[0].job_id
    assert {first, *store.aliases(first)} == {f"f{n}" for n in range(200)}


def test_of_many_claims_of_one_ticket_one_wins(store: Store) -> None:
    ticket = queued(store)
    answers = at_once(32, lambda n: store.claim(ticket, worker=f"w{n}", token=f"t{n}", lease_s=5))
    leases = [answer for answer in answers if isinstance(answer, Lease)]
    assert len(leases) == 1
    assert answers.count(ClaimRefused("held-by-other")) == 31
    assert store.get(ticket.job_id).token == leases[0].token


def test_parallel_releases_never_exceed_the_quota_or_double_a_ticket(store: Store) -> None:
    for _ in range(40):
        submitted(store)
    store.set_quotas({QUEUE: 25}, op=op())
    tickets = [ticket for found in at_once(32, lambda _: store.release(QUEUE, op=op())) for ticket in found]
    assert len({ticket.id for ticket in tickets}) == len(tickets) == 25
    assert store.published() == {QUEUE: 25}


def test_parallel_submits_have_different_times(store: Store) -> None:
    ids = at_once(64, lambda _: submitted(store))
    times = [store.get(job_id).created_at for job_id in ids]
    assert len(set(times)) == 64
