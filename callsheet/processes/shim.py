"""Becomes a command that dies with its parent: ``python shim.py PARENT GUARD argv...``.

The supervisor writes one byte into the standard input once its watchdog knows this process; end of file
instead means that the supervisor died before, and the command is not run. Guard ``pdeathsig`` (Linux) also
asks the kernel for SIGKILL at the end of the parent *thread*, which is quicker and needs nobody; it survives
the exec.

Started as a file by an interpreter without site packages, so that it costs milliseconds: standard library
only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h
CANNOT_RUN = 127  # as a shell answers


def main(args: list[str]) -> int:
    """Become the command; answers an exit code only when that is not to be or cannot be."""
    parent, guard, *argv = args
    try:
        if guard == "pdeathsig":
            die_with_parent()
        if not os.read(0, 1) or os.getppid() != int(parent):
            return CANNOT_RUN
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and that would be inherited
            signal.signal(number, signal.SIG_DFL)
        os.execvp(argv[0], argv)  # noqa: S606
    except OSError as error:
        print(f"cannot run {argv[0]}: {error.strerror}", file=sys.stderr)
        return CANNOT_RUN


def die_with_parent() -> None:
    """SIGKILL when the parent thread ends (Linux)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_PDEATHSIG): {os.strerror(number)}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
