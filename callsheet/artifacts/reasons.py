"""From what a file system or an S3 server said to one line of reason and one next step."""

from __future__ import annotations

import errno
import re

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_FOLDER = {errno.ENOTDIR, errno.EEXIST, errno.ENOENT, errno.EISDIR}

ELSEWHERE = "set storage_url (CALLSHEET_STORAGE_URL) to another place"
_OTHER = "Run `callsheet doctor`, which tries the storage and says what is wrong with it."

# What an S3 server says, and what helps. The first pattern that is found counts.
_S3 = (
    (r"NoSuchBucket", "Create the bucket, or correct its name in storage_url (CALLSHEET_STORAGE_URL)."),
    (
        r"169\.254\.169\.254",
        "No credentials were found: set s3_access_key_id and s3_secret_access_key, or AWS_* variables.",
    ),
    (
        r"\b40[13]\b|AccessDenied|SignatureDoesNotMatch|InvalidAccessKeyId|ExpiredToken",
        "Check s3_access_key_id and s3_secret_access_key and what they may do in this bucket.",
    ),
    (r"URL scheme is not allowed|BadScheme", "Set s3_allow_http when the endpoint speaks plain HTTP."),
    (
        r"error sending request|timed out|error trying to connect|dns error|\b50[0234]\b",
        "Check s3_endpoint and the network to it; the operation may be tried again.",
    ),
)


def reason(error: BaseException) -> str:
    """The first line of what was said, short enough for a message."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip(".")[:300]


def next_step(error: BaseException, elsewhere: str = ELSEWHERE) -> str:
    """One sentence on what to do about it; ``elsewhere`` says how to use another place instead."""
    codes = _codes(error)
    if codes & _FULL:
        return f"Free space there, or {elsewhere}."
    if codes & _FORBIDDEN:
        return f"Let this process's user write there, or {elsewhere}."
    if codes & _NO_FOLDER:
        return f"A part of that path is missing or of another kind: make it a folder, or {elsewhere}."
    return next((step for pattern, step in _S3 if re.search(pattern, str(error))), _OTHER)


def _codes(error: BaseException) -> set[int]:
    """Operating-system error numbers in an exception: its own, or those that obstore prints."""
    found = {int(code) for code in re.findall(r"\(os error (\d+)\)", str(error))}
    number = getattr(error, "errno", None)
    return found | {number} if isinstance(number, int) else found
