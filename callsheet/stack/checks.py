"""When each part of the stack is truly ready: asked where users will ask, not read from a log.

Every check answers within about a second, whatever the state of things.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Collection
from typing import Any

from kombu.exceptions import KombuError
from redis import RedisError

from callsheet.errors import Unreachable
from callsheet.settings import Settings
from callsheet.store.protocol import Store

ANSWER_S = 1.0


class Registered:
    """Whether all these workers are in the store, with a heartbeat newer than this object's first look.

    Heartbeats of a stack that was killed a moment ago live on for some seconds: they do not count.
    """

    def __init__(self, store: Callable[[], Store], workers: Collection[str]) -> None:
        self._store = store
        self._workers = frozenset(workers)
        self._since: float | None = None

    def __call__(self) -> bool:
        """Look once."""
        try:
            if self._since is None:
                self._since = self._store().now()
            return self._workers <= {gpu.name for gpu in self._store().gpus() if gpu.seen_at > self._since}
        except Unreachable:
            return False


def controller_answers(app: Any, node: str) -> Callable[[], bool]:
    """Whether a Celery node answers a ping."""

    def answers() -> bool:
        try:
            return bool(app.control.ping(destination=[node], timeout=ANSWER_S, limit=1))
        except (OSError, KombuError, RedisError):
            return False

    return answers


def flower_answers(settings: Settings) -> Callable[[], bool]:
    """Whether Flower's health check is fine."""
    host = connect_host(settings.flower_host)

    def answers() -> bool:
        connection = http.client.HTTPConnection(host, settings.flower_port, timeout=ANSWER_S)
        try:
            connection.request("GET", "/healthcheck")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    return answers


def connect_host(listen_host: str) -> str:
    """Where to reach what listens on that address."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(listen_host, listen_host)  # noqa: S104
