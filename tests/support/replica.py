"""A Valkey that follows another."""

from __future__ import annotations

from tests.support.live import until
from tests.support.valkey import Valkey


def replica_of(primary: Valkey, *args: str, aof: bool = False) -> Valkey:
    """A replica, not started yet; use it as a context manager, then :func:`wait_in_step`."""
    follow = ("--replicaof", f"127.0.0.1 {primary.port}", "--repl-diskless-sync-delay", "0")
    return Valkey(*follow, *args, aof=aof)


def wait_in_step(primary: Valkey, *, replicas: int = 1, within_s: float = 10.0) -> None:
    """Wait until so many replicas have all that the primary has. Raises AssertionError."""
    with primary.client() as client:

        def in_step() -> bool:
            info = client.info("replication")
            rows = [info[f"slave{n}"] for n in range(info["connected_slaves"])]
            return len([row for row in rows if row["state"] == "online" and row["offset"] > 0]) >= replicas

        until(in_step, within_s=within_s, what="a replica in step")
