"""What one process works with, made once on first use: settings, catalog, store, artifacts.

The only place with process-wide state. Tests and hosts that read their settings elsewhere call
:func:`configure` first.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

from callsheet.artifacts.objects import Objects, open_objects
from callsheet.catalog import Catalog, load_catalog
from callsheet.settings import Settings, load
from callsheet.store import open_store
from callsheet.store.protocol import Store

T = TypeVar("T")
_lock = threading.RLock()
_made: dict[tuple[str, int], object] = {}


def _renew_lock() -> None:
    """A child forked while another thread held the lock would wait for ever."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


def configure(settings: Settings, *, store: Store | None = None) -> None:
    """Use these settings (and this store) from now on in this process; what was made before is forgotten."""
    with _lock:
        _made.clear()
        _made[("settings", 0)] = settings
        if store is not None:
            _made[("store", os.getpid())] = store


def settings() -> Settings:
    """The settings; read on first use. Raises SettingsError."""
    return once("settings", load, per_process=False)


def catalog() -> Catalog:
    """The models that can be served."""
    return once("catalog", lambda: load_catalog(settings().catalog, settings().models_dir), per_process=False)


def store() -> Store:
    """The memory. A forked child gets its own connections."""
    config = settings()
    return once(
        "store",
        lambda: open_store(
            config.store_url,
            retention_s=config.retention_s,
            connect_timeout_s=config.connect_timeout_s,
            replica_wait_ms=config.replica_wait_ms,
        ),
    )


def objects() -> Objects:
    """Object storage. A forked child opens its own: obstore used across a fork hangs."""
    config = settings()
    return once(
        "objects",
        lambda: open_objects(
            config.storage_url,
            s3_endpoint=config.s3_endpoint,
            s3_region=config.s3_region,
            s3_access_key_id=config.s3_access_key_id,
            s3_secret_access_key=config.s3_secret_access_key,
            s3_allow_http=config.s3_allow_http,
        ),
    )


def once(name: str, make: Callable[[], T], *, per_process: bool = True) -> T:
    """Make a thing once per process (and per fork, unless ``per_process`` is False), until
    :func:`configure`.
    """
    key = (name, os.getpid() if per_process else 0)
    with _lock:
        if key not in _made:
            _made[key] = make()
        return _made[key]  # type: ignore[return-value]
