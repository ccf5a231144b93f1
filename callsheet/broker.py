"""Connections to the broker that keep one Redis client per channel.

kombu makes a new client for every message that is published, and redis-py fills a table of 170 entries for
each: an eighth of a submit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celery.app.amqp import AMQP
from kombu import Connection


class OneClient:
    """Stands for the class of a channel's clients: the client of a pool is made once.

    A client has no state but its pool, which hands every command its connection; so it may be shared.
    """

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self._client: Any = None

    def __call__(self, *, connection_pool: Any, **kwargs: Any) -> Any:
        """The client of this pool."""
        client = self._client
        if client is None or client.connection_pool is not connection_pool:
            client = self._client = self._make(connection_pool=connection_pool, **kwargs)
        return client


class BrokerConnection(Connection):
    """A kombu connection whose Redis channels keep their client."""

    def channel(self) -> Any:
        """A new channel; on any other transport as kombu makes it."""
        channel = super().channel()
        if hasattr(channel, "Client"):
            channel.Client = OneClient(channel.Client)
        return channel


class BrokerAMQP(AMQP):
    """Celery's maker of connections, which makes ours."""

    Connection = BrokerConnection
