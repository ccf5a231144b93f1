"""The file lock: exclusive, named, and gone with its holders."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from callsheet.errors import AlreadyRunning, SettingsError
from callsheet.processes import FileLock
from callsheet.processes.locks import alive


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_second_holder_is_refused_and_told_the_first_ones_pid(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "lock"
    with FileLock(path, held="Another stack runs on here"):
        begun = time.monotonic()
        with pytest.raises(
            AlreadyRunning, match=f"Another stack runs on here .pid {os.getpid()}.*kill {os.getpid()}"
        ):
            FileLock(path, held="Another stack runs on here").acquire()
        assert time.monotonic() - begun < 1, "a living holder is not waited for"


def test_it_can_be_taken_again_after_release(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    for _ in range(2):
        with FileLock(path, held="-"):
            assert path.read_text() == f"{os.getpid()}\n"


def test_a_file_left_by_a_crash_blocks_nobody(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text(f"{dead_pid()}\n")
    with FileLock(path, held="-"):
        assert path.read_text() == f"{os.getpid()}\n"


def test_a_child_that_inherits_it_holds_it_on_and_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = FileLock(path, held="A server runs").acquire()
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(first.fd,))
    first.release()
    path.write_text(f"{dead_pid()}\n")
    with pytest.raises(AlreadyRunning, match="is gone, but a child of it still holds"):
        FileLock(path, held="A server runs").acquire(patience_s=0.1)
    assert child.stdin is not None
    child.stdin.close()
    FileLock(path, held="A server runs").acquire(patience_s=10).release()
    child.wait()


def test_only_this_user_may_read_it(tmp_path: Path) -> None:
    with FileLock(tmp_path / "lock", held="-") as lock:
        assert lock.path.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match=r"file.*data_dir"):
        FileLock(tmp_path / "file" / "lock", held="-").acquire()


def test_its_descriptor_exists_only_while_it_is_held(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        _ = FileLock(tmp_path / "lock", held="-").fd


def test_alive() -> None:
    assert alive(os.getpid())
    assert alive(1)
    assert not alive(dead_pid())
    assert not alive(0)
