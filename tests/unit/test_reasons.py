"""What a message about storage tells the reader to do."""

from __future__ import annotations

import errno
import os

import pytest

from callsheet.artifacts.reasons import next_step, reason


@pytest.mark.parametrize(
    ("number", "step"),
    [
        (errno.ENOSPC, "Free space"),
        (errno.EDQUOT, "Free space"),
        (errno.EFBIG, "Free space"),
        (errno.EACCES, "user write there"),
        (errno.EROFS, "user write there"),
        (errno.ENOTDIR, "make it a folder"),
        (errno.EIO, "callsheet doctor"),
    ],
)
def test_system_errors_as_python_and_as_obstore_spell_them(number: int, step: str) -> None:
    python = OSError(number, os.strerror(number), "/films")
    obstore = RuntimeError(
        f"Generic LocalFileSystem error: {os.strerror(number)} (os error {number})\n\nDebug: x"
    )
    assert step in next_step(python)
    assert step in next_step(obstore)


@pytest.mark.parametrize(
    ("said", "step"),
    [
        ("Server returned non-2xx status code: 403 Forbidden: AccessDenied", "s3_access_key_id"),
        ("<Code>NoSuchBucket</Code> 404", "Create the bucket"),
        ("Error performing PUT http://169.254.169.254/latest/api/token", "No credentials"),
        ("HTTP error: error sending request", "s3_endpoint"),
        ("operation timed out", "s3_endpoint"),
        ("503 Service Unavailable", "s3_endpoint"),
        ("something new", "callsheet doctor"),
    ],
)
def test_what_s3_servers_say(said: str, step: str) -> None:
    assert step in next_step(RuntimeError(said))


def test_another_way_out_can_be_named() -> None:
    assert next_step(OSError(errno.ENOSPC, "full"), elsewhere="choose another path").endswith(
        "choose another path."
    )


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RuntimeError("first line.\n\nDebug source: ..."), "first line"),
        (RuntimeError(""), "RuntimeError"),
        (RuntimeError("x" * 1000), "x" * 300),
    ],
)
def test_a_reason_is_one_short_line(error: Exception, text: str) -> None:
    assert reason(error) == text
