"""Fixtures of every test folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.valkey import Valkey


@pytest.fixture(scope="session")
def valkey() -> Iterator[Valkey]:
    """One real Valkey for the session. Don't kill this one: a test that does makes its own ``Valkey``."""
    with Valkey() as server:
        yield server


@pytest.fixture
def valkey_url(valkey: Valkey) -> str:
    """URL of the session's Valkey, emptied before the test (all databases)."""
    client = valkey.client()
    client.flushall()
    client.close()
    return valkey.url


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tiny models."""
    from callsheet.workers.tiny import build_tiny

    folder = tmp_path_factory.mktemp("models")
    for name in ("tiny-wan", "tiny-ltx"):
        build_tiny(name, folder)
    return folder


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """With ``-n``, a file is one process's, and so are files that share what they start."""
    from tests.support.scheduling import ByFileOrGroup

    return ByFileOrGroup(config, log)
