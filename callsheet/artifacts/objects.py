"""Objects under keys, whole or not at all, in S3, in a folder or in memory."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from callsheet.artifacts.atomic import whole_file
from callsheet.artifacts.places import Place, check_key, parse_place
from callsheet.artifacts.reasons import next_step, reason
from callsheet.artifacts.stores import S3Access, guard_fork, make_store
from callsheet.errors import ObjectNotFound, StorageError

_CHUNK = 4 * 1024 * 1024  # bytes held in memory while a file is downloaded


@dataclass(frozen=True, slots=True)
class Probe:
    """What :meth:`Objects.probe` found."""

    url: str  # the place
    seconds: float  # for one write, read and delete
    creates_once: bool  # False: the server ignores create-if-absent, so nothing may rest on it


@dataclass(frozen=True, slots=True)
class Entry:
    """One object as a listing shows it."""

    key: str
    size: int  # bytes
    modified: float  # seconds since the epoch, by the clock of the storage


def open_objects(
    url: str,
    *,
    s3_endpoint: str = "",
    s3_region: str = "",
    s3_access_key_id: str = "",
    s3_secret_access_key: str = "",
    s3_allow_http: bool = False,
) -> Objects:
    """Objects at ``s3://bucket/prefix``, ``file:///folder`` or ``memory://name``; nothing is opened yet.

    Raises StorageError when the URL is none of these.
    """
    access = S3Access(s3_endpoint, s3_region, s3_access_key_id, s3_secret_access_key, s3_allow_http)
    return Objects(parse_place(url), access)


class Objects:
    """A place for objects. Every verb raises StorageError with the object's URL and the next step.

    Opened at its first use, and from then on of no use to forked children: see ``stores.guard_fork``.
    """

    def __init__(self, place: Place, access: S3Access) -> None:
        self._place = place
        self._access = access
        self._opened: Any = None

    def url(self, key: str = "") -> str:
        """The URL of an object; of the place when ``key`` is empty."""
        return self._place.url(check_key(key) if key else "")

    def at(self, url: str) -> Objects:
        """Objects at another place, reached with the same credentials."""
        return Objects(parse_place(url), self._access)

    def put(self, key: str, data: bytes | Path) -> None:
        """Write (or replace) an object from bytes or a file, whole or not at all: nobody ever sees a half."""
        check_key(key)
        if isinstance(data, Path) and not data.is_file():
            raise StorageError(f"{data} is no file; {self.url(key)} was not written.")
        with self._explained("write", key), self._tidied(key):
            self._create_root()
            self._put(key, data, mode="overwrite")

    def get(self, key: str) -> bytes:
        """Read an object. Raises ObjectNotFound."""
        return b"".join(self._chunks(key))

    def get_to(self, key: str, path: Path) -> Path:
        """Download an object to a file, which appears only when it is whole. Raises ObjectNotFound."""
        with whole_file(path) as part, part.open("wb") as file:
            for chunk in self._chunks(key):
                file.write(chunk)
        return path

    def exists(self, key: str) -> bool:
        """Whether an object is there."""
        import obstore

        check_key(key)
        with self._explained("look at", key), suppress(FileNotFoundError):
            obstore.head(self._store(), self._place.path(key))
            return True
        return False

    def delete(self, key: str) -> None:
        """Remove an object; no error when there is none."""
        import obstore

        check_key(key)
        with self._explained("delete", key), suppress(FileNotFoundError):
            obstore.delete(self._store(), self._place.path(key))

    def list(self, prefix: str = "") -> list[str]:
        """Keys of all objects below a prefix (whole parts: ``jobs/1``, not ``jo``), in order."""
        return sorted(entry.key for entry in self.entries(prefix))

    def entries(self, prefix: str = "") -> Iterator[Entry]:
        """All objects below a prefix, as :meth:`list` takes it, in no order; read page by page."""
        import obstore

        base = self._place.path("")
        below = self._place.path(check_key(prefix) if prefix else "") or None
        with self._explained("list", prefix), suppress(FileNotFoundError):
            for page in obstore.list(self._store(), below):
                for item in page:
                    key = item["path"].removeprefix(base).lstrip("/")
                    yield Entry(key, item["size"], item["last_modified"].timestamp())

    def probe(self) -> Probe:
        """Write, read and delete a small object, and see whether create-if-absent is honoured."""
        key, token = f"probe/{secrets.token_hex(8)}", secrets.token_bytes(16)
        begin = time.monotonic()
        try:
            self.put(key, token)
            if self.get(key) != token:
                raise StorageError(f"{self.url(key)} reads back other bytes than were written.")
            seconds = time.monotonic() - begin
            return Probe(self.url(), seconds, creates_once=self._refuses_second(key))
        finally:
            with suppress(StorageError):  # the finding counts, not the litter
                self.delete(key)

    # -- one layer down --------------------------------------------------------------------------------------

    def _store(self) -> Any:
        guard_fork(self._place.url())
        if self._place.scheme == "file" and not Path(self._place.root).is_dir():
            raise FileNotFoundError(2, "No such folder", self._place.root)
        if self._opened is None:
            self._opened = make_store(self._place, self._access)
        return self._opened

    def _create_root(self) -> None:
        if self._place.scheme == "file":
            Path(self._place.root).mkdir(parents=True, exist_ok=True)

    def _put(self, key: str, data: bytes | Path, *, mode: str) -> None:
        import obstore

        obstore.put(self._store(), self._place.path(key), data, mode=mode)

    def _refuses_second(self, key: str) -> bool:
        from obstore.exceptions import BaseError

        try:
            self._put(key, b"second", mode="create")
        except (BaseError, OSError):
            return self.get(key) != b"second"
        return False

    def _chunks(self, key: str) -> Iterator[bytes]:
        import obstore

        with self._explained("read", check_key(key)):
            stream = obstore.get(self._store(), self._place.path(key)).stream(min_chunk_size=_CHUNK)
            for chunk in stream:
                yield bytes(chunk)

    @contextmanager
    def _explained(self, verb: str, key: str) -> Iterator[None]:
        """Turn what obstore or the file system raised into a StorageError."""
        from obstore.exceptions import BaseError

        try:
            yield
        except StorageError:
            raise
        except (BaseError, OSError, ValueError) as error:
            url = self._place.url(key)
            if verb == "read" and isinstance(error, FileNotFoundError) and "NoSuchBucket" not in str(error):
                raise ObjectNotFound(
                    f"no object at {url}: it was never written, or was deleted. "
                    "Look at the job that should have written it, or submit that job again."
                ) from error
            raise StorageError(
                f"cannot {verb} {url}: {reason(error)}. Nothing half-written is left. {next_step(error)}"
            ) from error

    @contextmanager
    def _tidied(self, key: str) -> Iterator[None]:
        """After a failed write into a folder, remove the empty folders that it made on the way."""
        try:
            yield
        except BaseException:
            if self._place.scheme == "file":
                _prune(Path(self._place.root, key).parent, Path(self._place.root))
            raise


def _prune(folder: Path, root: Path) -> None:
    with suppress(OSError):  # not empty, or never made: done
        while folder != root:
            folder.rmdir()
            folder = folder.parent
