"""What the chaos tests play on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.theatre import Theatre
from tests.support.valkey import Valkey


@pytest.fixture(scope="module")
def theatre(tmp_path_factory: pytest.TempPathFactory, tiny_models: Path) -> Iterator[Theatre]:
    """Two A100s; each test leaves it as it found it, or brings back what it killed."""
    with (
        Valkey() as valkey,
        Theatre(
            tmp_path_factory.mktemp("theatre"), valkey, models_dir=tiny_models, yield_grace_s=3.0
        ) as stage,
    ):
        stage.open("a100-0", "a100-1")
        yield stage
