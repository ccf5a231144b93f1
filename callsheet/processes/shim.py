"""Runs a command that dies with its parent: ``python shim.py GUARD PARENT FD -- argv...``.

Two guards:

- ``pdeathsig`` (Linux): asks the kernel for SIGKILL when the parent *thread* ends, then becomes the command
  by exec. A parent that ended before the request is never noticed by it, so its pid is checked afterwards.
- ``pipe`` (anywhere): stays as the command's parent, passes signals on, and kills its own process group when
  the pipe ``FD``, whose writing end only the supervisor has, reports end of file.

Started as a file by an interpreter without site packages, so that it costs milliseconds: standard library
only.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from typing import NoReturn

PR_SET_PDEATHSIG = 1  # linux/prctl.h
CANNOT_RUN = 127  # as a shell answers
RELAYED = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def main(args: list[str]) -> int:
    """Run the command under its guard; the pdeathsig guard does not come back."""
    guard, parent, fd, dashes, *argv = args
    if dashes != "--" or not argv:
        raise SystemExit(__doc__)
    try:
        if guard == "pipe":
            return _watch(argv, int(fd))
        _exec(argv, int(parent))
    except OSError as error:
        print(f"cannot run {argv[0]}: {error.strerror}", file=sys.stderr)
        return CANNOT_RUN


def _exec(argv: list[str], parent: int) -> NoReturn:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        raise SystemExit(CANNOT_RUN)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and that would be inherited
        signal.signal(number, signal.SIG_DFL)
    os.execvp(argv[0], argv)  # noqa: S606


def _watch(argv: list[str], alive_fd: int) -> int:
    os.set_inheritable(alive_fd, False)
    wake, asleep = os.pipe()
    os.set_blocking(asleep, False)
    signal.set_wakeup_fd(asleep, warn_on_full_buffer=False)
    asked: list[int] = []
    for number in RELAYED:
        signal.signal(number, lambda signum, _frame: asked.append(signum))
    signal.signal(signal.SIGCHLD, lambda _signum, _frame: None)
    command = subprocess.Popen(argv, close_fds=False)
    while command.poll() is None:
        while asked:
            command.send_signal(asked.pop(0))
        readable, _, _ = select.select([alive_fd, wake], [], [])
        if alive_fd in readable:
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os.read(wake, 4096)
    return command.returncode if command.returncode >= 0 else 128 - command.returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
