"""``python -m benchmarks`` as a process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.figures import exit_code

ROOT = Path(__file__).resolve().parents[2]


def test_stdout_holds_one_document_and_nothing_else() -> None:
    pytest.importorskip("av")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--only", "encode"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    printed = json.loads(done.stdout)
    assert done.returncode == exit_code(printed), done.stderr
    assert set(printed["goals"]) == {"encode_s"}
    assert "encode: 1 times" in done.stderr
