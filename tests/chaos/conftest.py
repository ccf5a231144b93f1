"""What the chaos tests play on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.arena import WORKERS, Arena
from tests.support.chaos_table import SEED, played, table
from tests.support.hosting import current, hosted
from tests.support.restricted import Restricted
from tests.support.theatre import Theatre
from tests.support.valkey import Valkey


@pytest.fixture(scope="package")
def open_theatre(tmp_path_factory: pytest.TempPathFactory, tiny_models: Path) -> Iterator[Theatre]:
    """Two A100s; each test leaves it as it found it, or brings back what it killed.

    The rights that docs/redis.md tells suffice for all that happens there.
    """
    with (
        Restricted() as valkey,
        Theatre(
            tmp_path_factory.mktemp("theatre"), valkey, models_dir=tiny_models, yield_grace_s=3.0
        ) as stage,
    ):
        stage.open("a100-0", "a100-1")
        yield stage
        assert valkey.denied() == []


@pytest.fixture
def theatre(open_theatre: Theatre) -> Theatre:
    """This process as a client of the theatre."""
    open_theatre.use()
    return open_theatre


@pytest.fixture(scope="package")
def open_arena(tmp_path_factory: pytest.TempPathFactory, tiny_models: Path) -> Iterator[Arena]:
    """Three A100s and a host; what is killed there is started again."""
    settings = {"models_dir": tiny_models, "checkpoint_interval_s": 0.2}
    with Valkey() as valkey, Arena(tmp_path_factory.mktemp("arena"), valkey, **settings) as arena:
        arena.open(*WORKERS)
        with hosted(arena) as arena.host:
            yield arena


@pytest.fixture
def arena(open_arena: Arena) -> Iterator[Arena]:
    """This process as the host's, and as a client of the arena."""
    open_arena.use()
    with current(open_arena.host):
        yield open_arena


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the rounds of kills did."""
    if played:
        terminalreporter.section(f"kills at random moments (CHAOS_SEED={SEED})")
        for line in table(played):
            terminalreporter.write_line(line)
