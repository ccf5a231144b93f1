"""A file lock that dies with its holders and names them."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

from callsheet.errors import AlreadyRunning, SettingsError

POLL_S = 0.02


def alive(pid: int) -> bool:
    """Whether a process with that id exists (also somebody else's)."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class FileLock:
    """An exclusive ``flock`` on ``path``, which holds the pid of who took it.

    The kernel drops the lock when the last process that has the descriptor is gone, so a file left behind by
    a crash blocks nobody, and a child that inherits :attr:`fd` (``Child.pass_fds``) keeps the lock for as
    long as it lives. The file itself is never deleted: two holders could then each lock their own.
    """

    def __init__(self, path: Path, *, held: str) -> None:
        """``held`` starts the refusal, as in "Another stack runs on /data"."""
        self.path = path
        self.held = held
        self._fd: int | None = None

    @property
    def fd(self) -> int:
        """The locked file's descriptor."""
        if self._fd is None:
            raise RuntimeError(f"{self.path} is not locked by this process")
        return self._fd

    def acquire(self, *, patience_s: float = 3.0) -> FileLock:
        """Take the lock. Raises AlreadyRunning, SettingsError when its folder cannot be written.

        At once when the holder lives; children of a holder that is gone get ``patience_s`` to die.
        """
        fd = self._open()
        try:
            self._wait_for(fd, time.monotonic() + patience_s)
        except BaseException:
            os.close(fd)
            raise
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._fd = fd
        return self

    def release(self) -> None:
        """Give the lock back (children that inherited it keep it until they end)."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> FileLock:
        return self if self._fd is not None else self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _open(self) -> int:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SettingsError(
                f"{self.path.parent} cannot be used ({error.strerror}); nothing was started. "
                "Set data_dir to a folder that this user may write"
            ) from None

    def _wait_for(self, fd: int, deadline: float) -> None:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pid = _read_pid(fd)
                if alive(pid) or time.monotonic() > deadline:
                    raise AlreadyRunning(self._refusal(pid)) from None
                time.sleep(POLL_S)
            else:
                return

    def _refusal(self, pid: int) -> str:
        if alive(pid):
            return f"{self.held} (pid {pid}). Stop it first: kill {pid}"
        return (
            f"{self.held}: its first process (pid {pid}) is gone, but a child of it still holds {self.path}. "
            f"Find it with: fuser {self.path}"
        )


def _read_pid(fd: int) -> int:
    text = os.pread(fd, 32, 0).decode(errors="replace").strip()
    return int(text) if text.isdigit() else 0
