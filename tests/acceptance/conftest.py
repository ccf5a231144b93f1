"""Fixtures of the acceptance tests: the command line as users have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli


@pytest.fixture
def cli(tmp_path: Path, valkey_url: str) -> Cli:
    """The command line on a real, empty Valkey, with a data folder of its own and no workers."""
    return Cli(tmp_path, CALLSHEET_BROKER_URL=valkey_url)


@pytest.fixture
def offline(tmp_path: Path) -> Cli:
    """The command line without any server: nobody listens on port 1."""
    return Cli(tmp_path, CALLSHEET_BROKER_URL="redis://127.0.0.1:1/0")
