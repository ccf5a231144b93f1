"""Contract of ``last_report``: what the controllers did last."""

from __future__ import annotations

from callsheet.store.protocol import Store
from tests.support.clock import Clock


def test_a_report_is_kept_for_the_tick_that_ended(store: Store) -> None:
    assert store.last_report("tick") == {}
    assert store.begin_tick("tick", 1, token="a", busy_s=5)
    assert store.last_report("tick") == {}
    store.end_tick("tick", 1, token="a", report={"number": 1, "faults": ["reap: boom"]})
    assert store.last_report("tick") == {"number": 1, "faults": ["reap: boom"]}
    assert store.last_report("other") == {}


def test_a_tick_that_lost_its_turn_reports_nothing(store: Store, clock: Clock) -> None:
    assert store.begin_tick("tick", 1, token="a", busy_s=5)
    clock.advance(6)
    assert store.begin_tick("tick", 2, token="b", busy_s=5)
    store.end_tick("tick", 1, token="a", report={"number": 1})
    assert store.last_report("tick") == {}


def test_a_changed_answer_changes_nothing_in_the_store(store: Store) -> None:
    assert store.begin_tick("tick", 1, token="a", busy_s=5)
    store.end_tick("tick", 1, token="a", report={"number": 1})
    store.last_report("tick")["number"] = 99
    assert store.last_report("tick") == {"number": 1}
