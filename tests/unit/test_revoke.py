"""What a revoke answers to whoever sent it."""

from __future__ import annotations

from callsheet.records.states import State
from callsheet.store.memory import MemoryStore
from callsheet.tasks.revoke import cancel_all, told
from tests.support.clock import Clock
from tests.support.jobs import ended, submitted


def test_a_revoke_says_what_became_of_each_job() -> None:
    store = MemoryStore(Clock())
    film, waiting = ended(store), submitted(store)
    jobs = cancel_all(store, [film, f"{waiting}.1", "nobody"])
    assert jobs == {film: State.SUCCEEDED, waiting: State.CANCELLED}
    assert told(jobs) == f"cancelled: {waiting}; {film} had ended before: it stays succeeded"
    assert told({}) == "none of them is a job"
