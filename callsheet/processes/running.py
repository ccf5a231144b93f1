"""One life of one child: a process with its output, from start to burial. Not thread-safe."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from callsheet.processes.child import Child
from callsheet.processes.output import LineBuffer

SHIM = str(Path(__file__).with_name("shim.py"))
CHUNK = 64 * 1024  # bytes per read, the size of a pipe
MOST_CHUNKS = 16


class Guard:
    """How children learn that this process is gone: ``pdeathsig`` (Linux) or ``pipe`` (see ``shim``)."""

    def __init__(self, kind: str = "") -> None:
        self.kind = kind or ("pdeathsig" if sys.platform.startswith("linux") else "pipe")
        # Nobody ever writes into this pipe: the kernel closes its end with this process, and readers see it.
        self._alive, self._held = os.pipe() if self.kind == "pipe" else (-1, -1)

    def wrap(self, argv: tuple[str, ...]) -> list[str]:
        """The command line that runs ``argv`` under this guard."""
        shim = [sys.executable, "-I", "-S", SHIM, self.kind, str(os.getpid()), str(self._alive), "--"]
        return [*shim, *argv]

    @property
    def fds(self) -> tuple[int, ...]:
        """What the shim must inherit."""
        return (self._alive,) if self.kind == "pipe" else ()

    def close(self) -> None:
        """Give the pipe back; children that still run are killed by that."""
        if self.kind == "pipe":
            os.close(self._alive)
            os.close(self._held)


class Running:
    """A started process in a session of its own, so that a terminal's Ctrl-C reaches the supervisor alone."""

    def __init__(self, child: Child, guard: Guard, on_line: Callable[[str], None]) -> None:
        self.child = child
        self.started_at = time.monotonic()
        self.ended = asyncio.Event()
        self._on_line = on_line
        self._lines = LineBuffer()
        self._popen = subprocess.Popen(
            guard.wrap(child.argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **child.env},
            pass_fds=(*child.pass_fds, *guard.fds),
            start_new_session=True,
        )
        assert self._popen.stdout is not None
        self._out = self._popen.stdout.fileno()
        os.set_blocking(self._out, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._out, self._read)

    @property
    def pid(self) -> int:
        """Its process id, which is its session's and group's too."""
        return self._popen.pid

    @property
    def code(self) -> int:
        """Exit code; negative: killed by that signal."""
        assert self._popen.returncode is not None
        return self._popen.returncode

    @property
    def age_s(self) -> float:
        """Seconds since its start."""
        return time.monotonic() - self.started_at

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process alone; it passes on what it wants to."""
        if self._popen.poll() is None:
            self._popen.send_signal(number)

    def kill(self) -> None:
        """SIGKILL to its whole group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def reap(self) -> None:
        """Called at each SIGCHLD: if it has ended, read its last words and kill what it left in its group."""
        if self.ended.is_set() or self._popen.poll() is None:
            return
        self.kill()
        self._read()
        self._close()
        for line in self._lines.flush():
            self._on_line(line)
        self.ended.set()

    def _read(self) -> None:
        """Take what can be read now, but let the others have their turn."""
        for _ in range(MOST_CHUNKS):
            try:
                data = os.read(self._out, CHUNK)
            except BlockingIOError:
                return
            if not data:
                self._loop.remove_reader(self._out)
                return
            for line in self._lines.feed(data):
                self._on_line(line)

    def _close(self) -> None:
        self._loop.remove_reader(self._out)
        assert self._popen.stdout is not None
        self._popen.stdout.close()
