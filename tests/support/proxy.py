"""A TCP proxy in front of a server: it loses replies on request, or ends TLS."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType

from tests.support.valkey import free_port


class Proxy:
    """Listens on 127.0.0.1 and forwards to ``target``.

    ``lose_replies(n)`` cuts the next n connections on which an answer comes; ``lose_script_replies(n)`` only
    where the answer is that of a script which has run. ``lost`` counts them.
    """

    def __init__(self, target: int, tls: ssl.SSLContext | None = None) -> None:
        self.port = free_port()
        self._target = target
        self._tls = tls
        self._to_lose = 0
        self._only_scripts = False
        self.lost = 0
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", self.port))

    def lose_replies(self, count: int) -> None:
        """From now on: the request arrives, its reply does not."""
        self._to_lose, self._only_scripts = count, False

    def lose_script_replies(self, count: int) -> None:
        """From now on: a script has taken effect, and nobody hears of it."""
        self._to_lose, self._only_scripts = count, True

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sock in (self._listener, *self._sockets):
            _close(sock)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            if self._tls:
                client = self._tls.wrap_socket(client, server_side=True)
            server = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            _close(client)
            return
        self._sockets += [client, server]
        pair = _Pair(client, server)
        threading.Thread(target=self._ask, args=(pair,), daemon=True).start()
        self._answer(pair)

    def _ask(self, pair: _Pair) -> None:
        with pair.closing():
            while data := pair.client.recv(65536):
                pair.runs_script = data.find(b"EVALSHA", 0, 64) >= 0
                pair.server.sendall(data)

    def _answer(self, pair: _Pair) -> None:
        with pair.closing():
            while data := pair.server.recv(65536):
                if self._to_lose > 0 and self._hits(pair, data):
                    self._to_lose -= 1
                    self.lost += 1
                    return
                pair.client.sendall(data)

    def _hits(self, pair: _Pair, reply: bytes) -> bool:
        return not self._only_scripts or (pair.runs_script and not reply.startswith(b"-"))


@dataclass
class _Pair:
    """The two ends of one connection."""

    client: socket.socket
    server: socket.socket
    runs_script: bool = False  # what was asked last

    @contextlib.contextmanager
    def closing(self) -> Iterator[None]:
        """Until either side closes; then both do."""
        with contextlib.suppress(OSError):
            yield
        _close(self.client)
        _close(self.server)


def _close(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
