"""No orphans: how children die with their supervisor, even when that is killed -9.

Two nets. The watchdog, a tiny process, sees the end of a pipe when the supervisor is gone and kills every
process group that is left; it works on every platform and takes along what children forked. On Linux the
kernel also kills each child itself (PDEATHSIG), at once and without anybody's help.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

SHIM = str(Path(__file__).with_name("shim.py"))
WATCHDOG = str(Path(__file__).with_name("watchdog.py"))
BARE_PYTHON = (sys.executable, "-I", "-S")


class Guard:
    """The nets of one supervisor."""

    def __init__(self, *, pdeathsig: bool | None = None) -> None:
        """``pdeathsig``: whether to ask the kernel too; None: where it can (Linux)."""
        wanted = sys.platform.startswith("linux") if pdeathsig is None else pdeathsig
        self._kind = "pdeathsig" if wanted else "watchdog"
        self._watchdog = subprocess.Popen(
            [*BARE_PYTHON, WATCHDOG],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # a terminal's Ctrl-C is not for it
        )

    def wrap(self, argv: tuple[str, ...]) -> list[str]:
        """The command line that runs ``argv`` once :meth:`let_go` was called."""
        return [*BARE_PYTHON, SHIM, str(os.getpid()), self._kind, *argv]

    def let_go(self, process: subprocess.Popen[bytes]) -> None:
        """A started shim (a group leader with a pipe as standard input) may become its command."""
        self._tell("+", process.pid)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
            stdin.write(b"\n")

    def forget(self, pid: int) -> None:
        """That group has ended."""
        self._tell("-", pid)

    def close(self) -> None:
        """Send the watchdog home; it kills what is still running."""
        assert self._watchdog.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._watchdog.stdin.close()
        self._watchdog.wait()

    def _tell(self, sign: str, pid: int) -> None:
        assert self._watchdog.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # somebody killed the watchdog: the other net is left
            self._watchdog.stdin.write(f"{sign}{pid}\n".encode())
            self._watchdog.stdin.flush()
