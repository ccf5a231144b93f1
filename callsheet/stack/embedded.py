"""The embedded server: a real Valkey on 127.0.0.1 with its data in the data folder.

``<data_dir>/valkey`` holds its lock, configuration, port, password and append-only file;
``<data_dir>/server.url`` tells other processes where it is while it runs. Port and password stay the same
from one start to the next.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from callsheet.processes import Child, FileLock
from callsheet.settings import SERVER_URL_FILE
from callsheet.stack.binary import find_binary

NAME = "server"
HOST = "127.0.0.1"
PING_S = 1.0
READY_S = 120.0  # a long append-only file takes its time to load
GRACE_S = 30.0  # it writes what is left of the append-only file


@dataclass(frozen=True, slots=True)
class EmbeddedServer:
    """A server that may be started now: its folder is locked and its configuration written."""

    folder: Path
    binary: Path
    port: int
    password: str
    url_file: Path
    lock: FileLock

    @property
    def url(self) -> str:
        """``redis://`` URL with the password."""
        return f"redis://:{self.password}@{HOST}:{self.port}/0"

    @property
    def config_file(self) -> Path:
        """What the binary reads."""
        return self.folder / "valkey.conf"

    def child(self) -> Child:
        """The process to supervise. It inherits the lock, which so outlives a supervisor that was killed."""
        return Child(
            name=NAME,
            argv=(str(self.binary), str(self.config_file)),
            ready=self.answers,
            ready_s=READY_S,
            on_ready=self.announce,
            grace_s=GRACE_S,
            pass_fds=(self.lock.fd,),
        )

    def answers(self) -> bool:
        """Whether *this* server has loaded its data. A foreign one without a password would take ours too."""
        import redis

        client = redis.Redis.from_url(
            self.url,
            decode_responses=True,
            socket_timeout=PING_S,
            socket_connect_timeout=PING_S,
            retry=None,
        )
        with contextlib.closing(client):
            try:
                return bool(client.ping()) and _folder_of(client) == self.folder.resolve()
            except redis.RedisError:
                return False

    def announce(self) -> None:
        """Tell other processes of this data folder where it is."""
        _write_private(self.url_file, f"{self.url}\n")

    def withdraw(self) -> None:
        """It stops in order: nobody shall be sent to it any more."""
        self.url_file.unlink(missing_ok=True)


@contextmanager
def embedded_server(data_dir: Path, *, binary: Path | None = None) -> Iterator[EmbeddedServer]:
    """Lock the data folder and prepare its server; :meth:`EmbeddedServer.child` is then to be run.

    Raises AlreadyRunning when the folder has a running server, SettingsError when there is no binary.
    """
    folder = data_dir / "valkey"
    found = binary or find_binary()
    with FileLock(folder / "lock", held=f"Another server runs on {folder}") as lock:
        server = EmbeddedServer(
            folder, found, _port(folder), _password(folder), data_dir / SERVER_URL_FILE, lock
        )
        server.withdraw()  # a killed one may have left it
        _write_private(server.config_file, _config(server))
        try:
            yield server
        finally:
            server.withdraw()


def _folder_of(client: Any) -> Path:
    """The server's working folder."""
    return Path(client.config_get("dir")["dir"])


def _port(folder: Path) -> int:
    """The port of the last start if it is free, else another free one, which is remembered."""
    remembered = _read(folder / "port")
    port = int(remembered) if remembered.isdigit() and _is_free(int(remembered)) else _free_port()
    _write_private(folder / "port", f"{port}\n")
    return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError):
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _password(folder: Path) -> str:
    """127.0.0.1 is open to every user of the machine, the password only to readers of the data folder."""
    path = folder / "password"
    if not _read(path):
        _write_private(path, f"{secrets.token_hex(16)}\n")
    return _read(path)


def _config(server: EmbeddedServer) -> str:
    settings = {
        "bind": HOST,
        "port": str(server.port),
        "requirepass": server.password,
        "dir": _quoted(server.folder),
        "pidfile": _quoted(server.folder / "pid"),
        "daemonize": "no",
        "loglevel": "warning",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": '""',  # the append-only file is enough
        "maxmemory-policy": "noeviction",  # an evicted record is a lost job
    }
    return "".join(f"{name} {value}\n" for name, value in settings.items())


def _quoted(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return ""


def _write_private(path: Path, text: str) -> None:
    """Write a file that only this user may read; readers see all of it or the old one."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    part.replace(path)
