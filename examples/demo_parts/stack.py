"""``callsheet up`` as a child of the demo: its folder, start, readiness, and a stop that leaves nothing."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from examples.demo_parts.view import say, shown, waiting

DATA = Path(__file__).resolve().parents[2] / "demo-data"
OUT = DATA / "out"
LOG = DATA / "stack.log"
LOCK = DATA / "demo.lock"  # holds the process id of the stack
KEPT = ("models", LOCK.name)  # from one run to the next
TINY = ("tiny-wan", "tiny-ltx")
RUN_VARIABLE = "CALL_SHEET_DEMO_RUN"  # marks every process of one run

READY_S = 180.0  # longest start
STOP_S = 60.0  # longest stop before the stack is killed
POLL_S = 0.1
LOG_LINES = 30


class DemoFailed(Exception):
    """The demo cannot go on; the message says why."""


@contextmanager
def empty_folder() -> Iterator[int]:
    """``demo-data``, empty but for the models; yields its lock. Raises DemoFailed when a demo runs there."""
    DATA.mkdir(exist_ok=True)
    with LOCK.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoFailed(
                f"a demo runs in {shown(DATA)} already, with process {LOCK.read_text()} as its stack; "
                "wait for it, or stop that process"
            ) from None
        for path in DATA.iterdir():
            if path.name not in KEPT:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        OUT.mkdir()
        yield lock.fileno()


def build_models() -> None:
    """``callsheet models build-tiny``, unless an earlier run did. Raises DemoFailed."""
    if all((DATA / "models" / name / "model_index.json").exists() for name in TINY):
        return
    with waiting("building the tiny models"):
        built = subprocess.run(
            _callsheet("models", "build-tiny"), cwd=DATA, capture_output=True, text=True, check=False
        )
    if built.returncode != 0:
        raise DemoFailed(f"the tiny models could not be built:\n{built.stderr.strip()}")


@contextmanager
def running(lock: int) -> Iterator[Callable[[], None]]:
    """The stack while the block runs, ready when it begins; yields a check that it is still there.

    The lock goes along: a demo that was killed hard must not have its folder wiped below a living stack.
    """
    with LOG.open("wb") as log:
        stack = subprocess.Popen(
            _callsheet("up"),
            cwd=DATA,  # no callsheet.toml lies here
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C comes to the demo only, which stops the stack in order
            pass_fds=(lock,),
        )
    try:
        LOCK.write_text(str(stack.pid))
        _await_ready(stack)
        yield lambda: _check_alive(stack)
    except Exception as failure:
        failure.add_note(_end_of_log())
        raise
    finally:
        _stop(stack)


def free_port() -> int:
    """A TCP port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _callsheet(*args: str) -> list[str]:
    """The command line of this environment's callsheet."""
    return [sys.executable, "-m", "callsheet", *args]


def _await_ready(stack: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + READY_S
    with waiting("starting the stack: server, two GPU workers, beats, controllers, Flower"):
        while not (ready := _ready_line()):
            _check_alive(stack)
            if time.monotonic() > ends:
                raise DemoFailed(f"the stack was not ready within {READY_S:.0f} s")
            time.sleep(POLL_S)
    say(ready)


def _ready_line() -> str:
    """What ``callsheet up`` says when everything answers; "" before that."""
    for line in LOG.read_text(errors="replace").splitlines():
        name, _, words = line.partition("|")
        if name.strip() == "up" and words.strip().startswith("ready in"):
            return words.strip()
    return ""


def _end_of_log() -> str:
    lines = LOG.read_text(errors="replace").splitlines()[-LOG_LINES:]
    return "\n".join([f"the end of {shown(LOG)}:", *lines])


def _check_alive(stack: subprocess.Popen[bytes]) -> None:
    code = stack.poll()
    if code is not None:
        raise DemoFailed(f"`callsheet up` ended by itself with exit code {code}")


def _stop(stack: subprocess.Popen[bytes]) -> None:
    """End the stack and whatever it started. Raises DemoFailed when something had to be killed."""
    stack.send_signal(signal.SIGINT)
    try:
        stack.wait(STOP_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):  # a second Ctrl-C: no more patience
        stack.kill()
        stack.wait()
    left = _left_over()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    if left:
        raise DemoFailed(f"the stack left processes running, which were killed: {left}")


def _left_over() -> list[int]:
    """Processes of this run that still live (on Linux; elsewhere none is found)."""
    mark = f"{RUN_VARIABLE}={os.environ[RUN_VARIABLE]}".encode()
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/environ")
        if mark in _read(path).split(b"\0")
    ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process ended, or is not ours
        return b""
