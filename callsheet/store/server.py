"""What ``callsheet doctor`` asks a Redis server about itself, and the Sentinels about it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redis.exceptions import RedisError, ResponseError

from callsheet.settings import urls
from callsheet.store.connection import Connection, connect, sentinel


@dataclass(frozen=True, slots=True)
class SentinelFacts:
    """What the Sentinels say."""

    known: int  # Sentinels in the URL
    answering: int
    quorum: int  # so many must agree that the primary is down; 0: none told
    primary: str  # host:port; "" when none told


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the server says; "" for what it hides, as managed ones do."""

    version: str
    role: str
    replicas: int
    appendonly: str
    appendfsync: str
    maxmemory_policy: str
    sentinels: SentinelFacts | None = None


def look(url: str, limit_s: float) -> ServerFacts:
    """The facts of a setting's server. Raises SettingsError, or Unreachable."""
    connection = connect(url, limit_s)
    with contextlib.closing(connection.client):
        connection.call(connection.client.ping)
        info, config = _read(connection, "info"), _read(connection, "config_get")
    aof = {"0": "no", "1": "yes"}.get(str(info.get("aof_enabled", "")), "")
    return ServerFacts(
        version=str(info.get("valkey_version") or info.get("redis_version", "")),
        role={"master": "primary", "slave": "replica"}.get(str(info.get("role")), ""),
        replicas=int(info.get("connected_slaves", 0)),
        appendonly=aof or str(config.get("appendonly", "")),
        appendfsync=str(config.get("appendfsync", "")),
        maxmemory_policy=str(info.get("maxmemory_policy") or config.get("maxmemory-policy", "")),
        sentinels=_sentinels(urls.parse(url).sentinels, limit_s),
    )


def _read(connection: Connection, command: str) -> Mapping[str, Any]:
    """INFO, or CONFIG GET of all; empty when the server or our rights forbid it."""
    client: Any = connection.client

    def ask() -> Any:
        try:
            return client.info() if command == "info" else client.config_get("*")
        except ResponseError:
            return {}

    found: Mapping[str, Any] = connection.call(ask)
    return found


def _sentinels(given: urls.Sentinels | None, limit_s: float) -> SentinelFacts | None:
    if given is None:
        return None
    told: list[Any] = []
    for one in sentinel(given, limit_s / 2).sentinels:
        with contextlib.closing(one), contextlib.suppress(RedisError):
            told.append(one.sentinel_master(given.service))
    first: Mapping[str, Any] = told[0] if told else {}
    place = f"{first['ip']}:{first['port']}" if first else ""
    return SentinelFacts(len(given.hosts), len(told), int(first.get("quorum", 0)), place)
