"""Connections to the broker that keep one Redis client per channel.

kombu makes a new client for every message that is published, and redis-py fills a table of 170 entries for
each: an eighth of a submit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celery.app.amqp import AMQP
from kombu import Connection
from kombu.connection import ConnectionPool, PooledConnection


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


class KeepsClients:
    """Mixed into kombu's connections: their Redis channels keep their client."""

    def channel(self) -> Any:
        """A new channel; on any other transport as kombu makes it."""
        channel = super().channel()  # type: ignore[misc]
        if hasattr(channel, "Client"):
            channel.Client = OneClient(channel.Client)
        return channel


class BrokerConnection(KeepsClients, Connection):
    """A connection of ours, with pools of such."""

    def Pool(self, limit: int | None = None, **kwargs: Any) -> ConnectionPool:  # noqa: N802  kombu's own hook
        """The pool that producers take their connections from."""
        return BrokerPool(self, limit, **kwargs)


class PooledBrokerConnection(KeepsClients, PooledConnection):
    """A connection out of a pool; kombu has a class of its own for these."""


class BrokerPool(ConnectionPool):
    """A pool of them."""

    def new(self) -> PooledConnection:
        """One more."""
        return PooledBrokerConnection(self, **dict(self.connection._info(resolve=False)))


class BrokerAMQP(AMQP):
    """Celery's maker of connections, which makes ours."""

    Connection = BrokerConnection
