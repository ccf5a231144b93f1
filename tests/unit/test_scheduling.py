"""The table of files that share a deployment is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.scheduling import SHARING

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("group", "file"), [(group, file) for group, files in SHARING.items() for file in files]
)
def test_a_file_of_a_group_is_there(group: str, file: str) -> None:
    assert (ROOT / file).is_file(), f"{file} of group {group}: name it anew in tests/support/scheduling.py"
