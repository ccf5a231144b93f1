"""Kills what a supervisor leaves behind: ``python watchdog.py`` with the supervisor's pipe as standard input.

Lines ``+123`` and ``-123`` say which process groups are alive. At the end of file, which the kernel sends
when the supervisor is gone, however it went, every group that is left gets SIGKILL: children, and what they
forked. Standard library only, as for the shim.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterable


def watch(lines: Iterable[bytes]) -> set[int]:
    """Read until the end; the groups that are left."""
    groups: set[int] = set()
    for line in lines:
        if line.endswith(b"\n"):  # a half line was cut off by the supervisor's death
            (groups.add if line.startswith(b"+") else groups.discard)(int(line[1:]))
    return groups


def kill(groups: Iterable[int]) -> None:
    """SIGKILL to whole groups."""
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    kill(watch(sys.stdin.buffer))
