"""From a place to an obstore store, with bounded patience; and the guard against use across a fork."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from callsheet.artifacts.places import Place
from callsheet.errors import StorageError

#: A server that is dead (silent, refusing, unreachable) costs at most about 20 s: no request is tried again
#: after ``retry_timeout``. A running job goes on meanwhile. A slow one, 2 s for each answer, just works.
CLIENT: dict[str, Any] = {"connect_timeout": "5s", "read_timeout": "20s", "timeout": "300s"}
RETRY: dict[str, Any] = {
    "max_retries": 4,
    "retry_timeout": timedelta(seconds=15),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2},
}

_memory: dict[str, Any] = {}  # MemoryStore by name: two who open one memory:// URL share it
_used_by = 0  # process that first used obstore; its runtime has threads, and a fork does not copy threads


@dataclass(frozen=True, slots=True)
class S3Access:
    """How to reach an S3 server; what is empty comes from the usual AWS variables or the instance's role."""

    endpoint: str = ""
    region: str = ""
    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)
    allow_http: bool = False


def guard_fork(url: str) -> None:
    """Raise StorageError in a child whose parent used storage before the fork: there it would hang."""
    global _used_by
    if not _used_by:
        _used_by = os.getpid()
    if _used_by != os.getpid():
        raise StorageError(
            f"object storage was used in process {_used_by} before process {os.getpid()} was forked from it; "
            f"here every operation on {url} would hang, so nothing was written or read. "
            "Use storage only after the fork, or start processes by spawn."
        )


def make_store(place: Place, access: S3Access) -> Any:
    """An obstore store. A folder must be there already. Raises what obstore raises."""
    from obstore.store import LocalStore, MemoryStore  # 60 ms, so not before somebody needs it

    if place.scheme == "file":
        return LocalStore(prefix=Path(place.root), automatic_cleanup=True)
    if place.scheme == "memory":
        return _memory.setdefault(place.root, MemoryStore())
    return _s3(place.root, access)


def _s3(bucket: str, access: S3Access) -> Any:
    from obstore.store import S3Store

    given = {
        "endpoint": access.endpoint,
        "region": access.region,
        "access_key_id": access.access_key_id,
        "secret_access_key": access.secret_access_key,
    }
    options = CLIENT | {"allow_http": access.allow_http}
    set_ones = {name: value for name, value in given.items() if value}
    return S3Store(bucket, client_options=options, retry_config=RETRY, **set_ones)
