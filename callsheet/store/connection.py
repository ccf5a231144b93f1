"""One Redis connection pool: a blip is retried, an outage is told within a time limit.

redis-py's own retries are switched off: they nest (connecting inside a command) and so have no bound in time.
Every verb of the store may be sent twice, so trying again here is always safe.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import redis
from redis.backoff import NoBackoff
from redis.commands.core import Script
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ConnectionError,
    InvalidResponse,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TimeoutError,
)
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

from callsheet import errors
from callsheet.settings import mask_url, urls

T = TypeVar("T")
log = logging.getLogger(__name__)

WAIT_MS = 200.0  # how long a verb that waits for a replica waits by default
LOOK_S = 2.0  # how often it is looked whether a replica is there
WARN_S = 10.0  # how often a replica that lags is told
_SENTINEL: Any = Sentinel  # some versions of redis-py annotate its making, others do not
WAIT_CHANNEL = "callsheet:wait"  # nobody listens: see Connection.run_replicated

_DENIED = (AuthenticationError, AuthorizationError, NoPermissionError)
_OUTAGE = (ConnectionError, TimeoutError, ReadOnlyError)  # BusyLoadingError is a ConnectionError
_PAUSE_S = 0.05  # between two tries


class Connection:
    """Calls Redis and turns its outages into :class:`callsheet.errors.Unreachable`.

    With clients of :func:`connect` a call that fails takes at most 1.5 x ``limit_s``: a try begins in the
    first half, and takes at most a half for connecting and one for the answer.
    """

    def __init__(self, client: redis.Redis, limit_s: float, wait_ms: float = 0.0) -> None:
        self.client = client
        self.limit_s = limit_s
        self.wait_ms = int(min(wait_ms, limit_s * 250))  # never near the time limit of an answer
        self._replica = (False, 0.0)  # whether one was there, and until when (monotonic) that holds
        self._warn_after = 0.0

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

    def run_replicated(self, script: Script, args: Sequence[object]) -> tuple[Any, bool | None]:
        """The script's answer, and whether a replica holds what it says; None: no replica is there.

        Waits for at most ``wait_ms``; 0 asks for no replica. Raises as :meth:`call`. A repeated verb answers
        from memory and writes nothing, and WAIT would then wait for nothing: so a message to nobody is
        written behind it, which is replicated and stores nothing.
        """
        return self.call(lambda: self._try_replicated(script, args))

    def _try_replicated(self, script: Script, args: Sequence[Any]) -> tuple[Any, bool | None]:
        if not self.wait_ms or not self._has_replica():
            return script(args=args), None
        answer, copies = self._run_and_wait(lambda pipe: pipe.evalsha(script.sha, 0, *args))
        if isinstance(answer, NoScriptError):
            answer, copies = self._run_and_wait(lambda pipe: pipe.eval(script.script, 0, *args))
        if isinstance(answer, Exception):
            raise answer
        replicated = isinstance(copies, int) and copies > 0
        if not replicated:
            self._replica = (False, 0.0)  # perhaps it is gone: look again at the next verb
            self._warn(copies)
        return answer, replicated

    def _run_and_wait(self, run: Callable[[Any], object]) -> tuple[Any, Any]:
        """Answers of the script and of WAIT, which sees its own connection's writes; errors as values."""
        with self.client.pipeline(transaction=False) as pipe:
            run(pipe)
            pipe.publish(WAIT_CHANNEL, "")
            pipe.wait(1, self.wait_ms)
            answer, _, copies = pipe.execute(raise_on_error=False)
        return answer, copies

    def _has_replica(self) -> bool:
        there, until = self._replica
        if time.monotonic() < until:
            return there
        try:
            info = self.client.info("replication")
            there = info.get("role") == "master" and int(info.get("connected_slaves", 0)) > 0
        except _OUTAGE:
            raise
        except ResponseError:  # a managed server may hide it
            there = False
        self._replica = (there, time.monotonic() + LOOK_S)
        return there

    def _warn(self, copies: object) -> None:
        if time.monotonic() < self._warn_after:
            return
        self._warn_after = time.monotonic() + WARN_S
        why = f": {_said(copies)}" if isinstance(copies, Exception) else ""
        log.warning(
            "No replica of the store (Redis at %s) confirmed the last write within %d ms%s. The write is "
            "done, but if this server is lost before a replica has it, a fail-over loses it: a submitted job "
            "is then unknown, a finished one runs again. Look at the replica's lag (INFO replication).",
            self.where,
            self.wait_ms,
            why,
        )

    @property
    def where(self) -> str:
        """Host and port, the path of the socket, or service and Sentinels; never a password."""
        pool = self.client.connection_pool
        if isinstance(pool, SentinelConnectionPool):
            hosts = [
                sentinel.connection_pool.connection_kwargs for sentinel in pool.sentinel_manager.sentinels
            ]
            places = tuple((str(host["host"]), int(host["port"])) for host in hosts)
            return urls.Sentinels(str(pool.service_name), places).where
        options = self.client.connection_pool.connection_kwargs
        if path := options.get("path"):
            return str(path)
        return f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"

    def _outage_text(self, error: Exception) -> str:
        if hint := urls.untrusted(error):
            return f"The store (Redis at {self.where}) was not asked, so nothing was changed: {hint}."
        return (
            f"The store (Redis at {self.where}) does not answer: {_said(error)}. Whether the last call took "
            "effect is unknown; it is safe to repeat. Start Redis (`callsheet up` runs one of its own), or "
            "correct its URL in the settings; `callsheet doctor` checks it."
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


def connect(url: str, limit_s: float, wait_ms: float = 0.0) -> Connection:
    """A connection for any URL of ``settings/urls.py`` but memory's; nothing is sent yet.

    Options in the URL win over ours. ``wait_ms``: see :meth:`Connection.run_replicated`. Raises SettingsError
    for a URL that cannot be read.
    """
    try:
        return Connection(_client(urls.parse(url), limit_s / 2), limit_s, wait_ms)
    except ValueError as error:
        raise errors.SettingsError(
            f"The store URL {mask_url(url)!r} {error}; nothing was started. It begins with redis://, "
            "rediss://, unix://, sentinel:// or memory://, for example redis://localhost:6379/0."
        ) from error


def _client(url: urls.RedisUrl, half_s: float) -> redis.Redis:
    options: dict[str, Any] = {
        "decode_responses": True,
        "socket_connect_timeout": half_s,
        "socket_timeout": half_s,
        "retry": Retry(NoBackoff(), 0),
    }
    if url.sentinels is None:
        return redis.Redis.from_url(url.for_store(), **options)
    if url.password:
        options |= {"username": url.user or None, "password": url.password}
    manager: Any = sentinel(url.sentinels, half_s)
    return cast(redis.Redis, manager.master_for(url.sentinels.service, db=url.db, **options))


def sentinel(found: urls.Sentinels, limit_s: float) -> Sentinel:
    """The Sentinels' manager; all of them together take at most ``limit_s`` to say where the primary is."""
    each_s = limit_s / len(found.hosts)
    limits = {"socket_timeout": each_s, "socket_connect_timeout": each_s, "retry": Retry(NoBackoff(), 0)}
    options = {"decode_responses": True, **limits, **found.login}
    made: Sentinel = _SENTINEL(list(found.hosts), sentinel_kwargs=options)
    return made


def _said(error: object) -> str:
    return str(error).rstrip(". ")
