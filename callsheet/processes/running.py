"""One life of one child: a process with its output, from start to burial. Not thread-safe."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable

from callsheet.processes.child import Child
from callsheet.processes.guard import Guard
from callsheet.processes.output import LineBuffer

CHUNK = 64 * 1024  # bytes per read, the size of a pipe
MOST_CHUNKS = 16


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
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **child.env},
            pass_fds=child.pass_fds,
            start_new_session=True,
        )
        guard.let_go(self._popen)
        self._guard = guard
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
        self._guard.forget(self.pid)
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
