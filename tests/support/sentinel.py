"""Real Sentinels around a real primary and its replica, which they promote when the primary dies."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import redis

from tests.support.live import until
from tests.support.replica import replica_of, wait_in_step
from tests.support.valkey import Valkey, binary, free_port

SERVICE = "films"
DOWN_MS = 500  # a server silent for so long is down
QUORUM = 2

_CONF = """bind 127.0.0.1
port {port}
dir "{folder}"
sentinel monitor {service} 127.0.0.1 {primary} {quorum}
sentinel down-after-milliseconds {service} {down_ms}
sentinel failover-timeout {service} 3000
"""


class SentinelTrio:
    """Three Sentinels, a primary and a replica, all with AOF; a context manager.

    ``primary`` is the server that was the primary at first, ``replica`` the other. ``down_ms``: see DOWN_MS.
    """

    def __init__(self, *, down_ms: int = DOWN_MS) -> None:
        self.down_ms = down_ms
        # without delay: a full copy waits for other replicas otherwise
        self.primary = Valkey("--repl-diskless-sync-delay", "0", aof=True)
        self.replica = replica_of(self.primary, aof=True)
        self.ports = [free_port() for _ in range(3)]
        self.folder = Path(tempfile.mkdtemp(prefix="callsheet-sentinel-"))
        self.processes: list[subprocess.Popen[bytes]] = []
        self._stack = ExitStack()

    def url(self, service: str = SERVICE, *, db: int = 0) -> str:
        """The ``sentinel://`` URL as a setting takes it."""
        return f"sentinel://{','.join(f'127.0.0.1:{port}' for port in self.ports)}/{db}?service={service}"

    def __enter__(self) -> SentinelTrio:
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self._stack.callback(self._stop)
        try:
            for server in (self.primary, self.replica):
                self._stack.enter_context(server)
            wait_in_step(self.primary)
            for port in self.ports:
                self.processes.append(self._start(port))
            until(self._agreed, within_s=60, what="three Sentinels that know each other and the replica")
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def kill_primary(self) -> None:
        """Kill -9 the first primary."""
        self.primary.kill9()

    def wait_promoted(self, *, within_s: float = 15.0) -> None:
        """Wait until the replica is the primary and every Sentinel says so. Raises AssertionError."""
        until(self._promoted, within_s=within_s, what="the replica promoted")

    def _promoted(self) -> bool:
        with self.replica.client() as client:
            role = client.info("replication")["role"]
        told = [self._ask(port).get("port") for port in self.ports]
        return role == "master" and told == [self.replica.port] * 3

    def _agreed(self) -> bool:
        facts = [self._ask(port) for port in self.ports]
        return all(f.get("num-slaves") == 1 and f.get("num-other-sentinels") == 2 for f in facts)

    def _ask(self, port: int) -> dict[str, object]:
        client = redis.Redis(port=port, decode_responses=True, socket_timeout=2)
        with contextlib.closing(client):
            try:
                told: Any = client.sentinel_master(SERVICE)
                return dict(told)
            except redis.RedisError:
                return {}

    def _start(self, port: int) -> subprocess.Popen[bytes]:
        folder = self.folder / str(port)
        folder.mkdir()
        conf = folder / "sentinel.conf"
        facts = {"primary": self.primary.port, "quorum": QUORUM, "down_ms": self.down_ms}
        conf.write_text(_CONF.format(port=port, folder=folder, service=SERVICE, **facts))
        with (folder / "log").open("ab") as log:
            command = [str(binary()), str(conf), "--sentinel"]
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait(10)
