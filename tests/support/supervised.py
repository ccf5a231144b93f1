"""A supervisor in a process of its own, so that a test can signal and kill it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 30.0

#: Runs a test with each way in which children die with their parent on this platform.
guards = pytest.mark.parametrize(
    "guard", ["pdeathsig", "watchdog"] if sys.platform.startswith("linux") else ["watchdog"]
)

#: A process that tells its pid and waits; SIGTERM ends it.
SLEEPER = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(300)"

#: Runs the children that the test's code leaves in ``children``; the guard comes on the command line.
_FRAME = """
import re, signal, sys, time
from pathlib import Path
from callsheet.errors import CallsheetError
from callsheet.processes import Child, Restart, RestartWhen, Supervisor
PDEATHSIG = {{"pdeathsig": True, "watchdog": False, "": None}}[sys.argv[1]]
DIR = Path(sys.argv[2])
def python(code, *args):
    return (sys.executable, "-u", "-c", code, *map(str, args))
{code}
try:
    boss = Supervisor(children, name="boss", pdeathsig=PDEATHSIG)
    boss.run(on_ready=lambda: print("boss: all ready", flush=True))
except CallsheetError as error:
    print(f"FAILED {{error}}", file=sys.stderr)
    sys.exit(1)
"""


def wait_until(condition: Callable[[], bool], what: str, within_s: float = PATIENCE_S) -> None:
    """Wait for a condition; AssertionError with ``what`` when it does not come true in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what}"
        time.sleep(0.01)


def lives(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return not Path("/proc/self").exists()


def pid_in(path: Path) -> int:
    """The pid that a process wrote into a file; waits for it."""
    wait_until(lambda: path.exists() and path.read_text().strip().isdigit(), f"{path.name} holds a pid")
    return int(path.read_text())


class Program:
    """A started program whose output (both streams) is collected; killed at the end of the ``with`` block."""

    def __init__(self, argv: Sequence[str], *, env: dict[str, str] | None = None, cwd: Path = ROOT) -> None:
        self.process = subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            start_new_session=True,
        )
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    @property
    def output(self) -> str:
        """What it has written so far."""
        return "".join(self._lines)

    def sees(self, text: str, within_s: float = PATIENCE_S) -> None:
        """Wait until it has written ``text``."""
        deadline = time.monotonic() + within_s
        while text not in self.output:
            ended = self.process.poll() is not None and not self._reader.is_alive()
            assert not ended, f"ended without {text!r}:\n{self.output}"
            assert time.monotonic() < deadline, f"no {text!r} within {within_s:g} s:\n{self.output}"
            time.sleep(0.01)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def kill9(self) -> None:
        """Kill it as a crash would, and wait for its end."""
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def ends(self, within_s: float = PATIENCE_S) -> int:
        """Wait for its end; its exit code."""
        try:
            code = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still runs after {within_s:g} s:\n{self.output}") from None
        self._reader.join(5)
        return code

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)
        self._reader.join(5)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.append(line.decode(errors="replace"))


def supervise(code: str, folder: Path, *, guard: str = "") -> Program:
    """Start a supervisor; ``code`` leaves ``children``, may use ``DIR`` (``folder``) and ``python(code)``.

    ``guard``: "pdeathsig" (with the watchdog), "watchdog" alone, "" = what the platform has.
    """
    return Program([sys.executable, "-u", "-c", _FRAME.format(code=code), guard, str(folder)])
