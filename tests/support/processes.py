"""Run a piece of Python in a process of its own, for what would harm the test's."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_python(code: str, *args: object, timeout_s: float = 240) -> str:
    """Standard output of ``python -c code args...``; AssertionError with its standard error when it fails."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},  # torch's threads only get in each other's way here
        check=False,
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
