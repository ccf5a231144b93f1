"""Storage that is a file instead of a folder, under a real worker whose GPU a pro job wants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from callsheet.records.states import State
from tests.support.live import until
from tests.support.theatre import WAIT_S, Theatre
from tests.support.valkey import Valkey

pytestmark = [pytest.mark.torch, pytest.mark.chaos]


@pytest.fixture(scope="module")
def theatre(tmp_path_factory: pytest.TempPathFactory, tiny_models: Path) -> Iterator[Theatre]:
    """One A100."""
    folder = tmp_path_factory.mktemp("storage")
    settings = {"models_dir": tiny_models, "storage_url": (folder / "stored").as_uri()}
    with Valkey() as valkey, Theatre(folder, valkey, pace_s=0.05, **settings) as stage:
        stage.open("a100-0", controllers=1)
        yield stage


def test_a_preemption_is_declined_and_the_heir_waits_for_its_turn(theatre: Theatre) -> None:
    stored, events = theatre.folder / "stored", theatre.store.events
    victim = theatre.stopped_at("step 2", "phase store", seed=1)
    stored.write_text("a file where the folder should be")
    heir = theatre.submit(tier="pro", seed=2)
    theatre.wait_at(victim.id, "phase store")
    until(
        lambda: "healed" in {event.kind for event in events(heir.id)},
        within_s=WAIT_S,
        what="the promise to the heir taken back",
    )
    assert theatre.record(victim).state is State.RUNNING
    stored.unlink()
    theatre.open_gate(victim.id)
    record = theatre.check_whole(victim, seed=1)
    assert (record.attempt, record.preemptions, record.crashes) == (1, 0, 0)
    (declined,) = [event for event in events(victim.id) if event.kind == "declined"]
    assert "step 2 could not be saved" in declined.reason
    assert theatre.check_whole(heir, seed=2).started_at >= record.ended_at
    healed, *_ = [event for event in events(heir.id) if event.kind == "healed"]
    assert "goes on with another job" in healed.reason
