"""One Redis connection pool: a blip is retried, an outage is told within a time limit.

redis-py's own retries are switched off: they nest (connecting inside a command) and so have no bound in time.
Every verb of the store may be sent twice, so trying again here is always safe.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ConnectionError,
    InvalidResponse,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    TimeoutError,
)
from redis.retry import Retry

from callsheet import errors
from callsheet.settings import mask_url, urls

T = TypeVar("T")

_DENIED = (AuthenticationError, AuthorizationError, NoPermissionError)
_OUTAGE = (ConnectionError, TimeoutError, ReadOnlyError)  # BusyLoadingError is a ConnectionError
_PAUSE_S = 0.05  # between two tries


class Connection:
    """Calls Redis and turns its outages into :class:`callsheet.errors.Unreachable`.

    With clients of :func:`connect` a call that fails takes at most 1.5 x ``limit_s``: a try begins in the
    first half, and takes at most a half for connecting and one for the answer.
    """

    def __init__(self, client: redis.Redis, limit_s: float) -> None:
        self.client = client
        self.limit_s = limit_s

    def call(self, command: Callable[[], T]) -> T:
        """The command's answer. Raises Unreachable, or Refused when the server is out of memory."""
        last_try = time.monotonic() + self.limit_s / 2
        while True:
            try:
                return command()
            except OutOfMemoryError as error:
                raise errors.Refused(self._full_text()) from error
            except _DENIED as error:
                raise errors.Unreachable(self._denied_text(error)) from error
            except InvalidResponse as error:
                raise errors.Unreachable(self._outage_text(error)) from error
            except _OUTAGE as error:
                if urls.untrusted(error) or time.monotonic() + _PAUSE_S >= last_try:
                    raise errors.Unreachable(self._outage_text(error)) from error
                time.sleep(_PAUSE_S)

    @property
    def where(self) -> str:
        """Host and port, or the path of the socket; never a password."""
        options = self.client.connection_pool.connection_kwargs
        if path := options.get("path"):
            return str(path)
        return f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"

    def _outage_text(self, error: Exception) -> str:
        if hint := urls.untrusted(error):
            return f"The store (Redis at {self.where}) was not asked, so nothing was changed: {hint}."
        return (
            f"The store (Redis at {self.where}) does not answer: {_said(error)}. Whether the last call took "
            "effect is unknown; it is safe to repeat. Start Redis, or correct its URL in the settings; "
            "`callsheet doctor` checks it."
        )

    def _denied_text(self, error: Exception) -> str:
        return (
            f"The store (Redis at {self.where}) refuses our credentials: {_said(error)}. Nothing was "
            "changed. Correct user and password in the Redis URL of the settings, or the user's rights (ACL)."
        )

    def _full_text(self) -> str:
        return (
            f"The store (Redis at {self.where}) is out of memory, so nothing was changed. "
            "Raise its maxmemory or shorten the retention of ended jobs, then try again."
        )


def connect(url: str, limit_s: float) -> Connection:
    """A connection for ``redis://``, ``rediss://``, ``unix://`` or ``redis+socket://``; nothing is sent yet.

    Options in the URL win over ours. Raises SettingsError for a URL that cannot be read.
    """
    half_s = limit_s / 2
    try:
        client = redis.Redis.from_url(
            urls.for_store(url),
            decode_responses=True,
            socket_connect_timeout=half_s,
            socket_timeout=half_s,
            retry=Retry(NoBackoff(), 0),
        )
    except ValueError as error:
        raise errors.SettingsError(
            f"The store URL {mask_url(url)!r} {error}; nothing was started. It begins with "
            "redis://, rediss://, unix:// or memory://, for example redis://localhost:6379/0."
        ) from error
    return Connection(client, limit_s)


def _said(error: Exception) -> str:
    return str(error).rstrip(". ")
