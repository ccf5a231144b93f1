"""Fixtures of every test folder."""

from __future__ import annotations

from collections.abc import Iterator

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
