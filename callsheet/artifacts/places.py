"""Where objects live, and which keys they may have. Pure: nothing is opened here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from callsheet.errors import StorageError

_ALLOWED = "s3://bucket[/prefix], file:///absolute/folder or memory://[name]"
_SEGMENT = re.compile(r"[A-Za-z0-9_=+@,-][A-Za-z0-9_=+@,.-]*")
_MAX_KEY = 900  # S3 allows 1,024 bytes, prefix included


@dataclass(frozen=True, slots=True)
class Place:
    """A bucket, a folder or a named piece of this process's memory, with a prefix inside it."""

    scheme: str  # s3 | file | memory
    root: str  # bucket, absolute folder, or name
    prefix: str = ""  # "" or "a/b"; a folder needs none

    def path(self, key: str) -> str:
        """The key as the store under the prefix knows it."""
        return f"{self.prefix}/{key}".strip("/")

    def url(self, key: str = "") -> str:
        """The URL of an object; of the place itself when ``key`` is empty."""
        if self.scheme == "file":
            return Path(self.root, key).as_uri()
        return f"{self.scheme}://{self.root}/{quote(self.path(key))}".removesuffix("/")


def parse_place(url: str) -> Place:
    """Read a storage URL. Raises StorageError that says what is allowed."""
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.scheme == "file" and not parts.netloc and path.startswith("/"):
        return Place("file", str(Path(path)))
    if (parts.scheme == "s3" and parts.netloc) or parts.scheme == "memory":
        return Place(parts.scheme, parts.netloc, path.strip("/"))
    raise StorageError(f"{url!r} is no place for objects; nothing was opened. Set storage_url to {_ALLOWED}.")


def split_url(url: str) -> tuple[str, str]:
    """Split an object's URL into (place, key), so that ``open_objects(place)`` finds it under the key.

    This is how a client downloads a film whose URL it got, with its own credentials. Raises StorageError.
    """
    place, _, key = url.rpartition("/")
    parse_place(place)
    return place, check_key(unquote(key))


def check_key(key: str) -> str:
    """The key itself, when every store takes it literally. Raises StorageError otherwise."""
    if len(key) <= _MAX_KEY and all(_SEGMENT.fullmatch(part) for part in key.split("/")):
        return key
    raise StorageError(
        f"{key[:100]!r} is no key of an object; nothing was written or read. Use up to {_MAX_KEY} letters, "
        "digits and _=+@,.- in parts separated by single slashes; no part may start with a dot."
    )


def is_segment(text: str) -> bool:
    """Whether the text can be one part of a key."""
    return len(text) <= 200 and _SEGMENT.fullmatch(text) is not None
