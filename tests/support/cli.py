"""The command line as a real subprocess."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "callsheet")
LIMIT_S = 60.0  # of one call, on a busy machine


@dataclass(frozen=True, slots=True)
class Said:
    """What one call answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """stdout as the one document that it must be."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The error that is the last line of stderr in JSON mode."""
        found: dict[str, Any] = json.loads(self.err.splitlines()[-1])["error"]
        return found


class Cli:
    """Calls with an environment that holds nothing of the developer's own deployment."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.env = clean_env() | {"CALLSHEET_DATA_DIR": str(folder / "data"), **settings}

    def __call__(self, *args: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Said:
        """Run ``callsheet`` with these arguments in the folder, without a terminal."""
        done = subprocess.run(
            [*COMMAND, *args],
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=LIMIT_S,
            cwd=self.folder,
            env={**self.env, **(env or {})},
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def start(self, *args: str, **popen: Any) -> subprocess.Popen[str]:
        """Start a call and leave it running; the caller ends it."""
        usual = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        options = {**usual, "env": self.env, "cwd": self.folder, "preexec_fn": hear_ctrl_c, **popen}
        return subprocess.Popen([*COMMAND, *args], text=True, **options)


def hear_ctrl_c() -> None:
    """In the child: a shell's background jobs are started deaf to SIGINT, and hand that on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def clean_env() -> dict[str, str]:
    """The environment without callsheet's variables and without what changes how output looks."""
    drop = ("CALLSHEET_", "AWS_", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONIOENCODING")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(drop)}
    return {**kept, "PYTHONPATH": str(Path(__file__).parents[2]), "TZ": "UTC"}
