"""A TCP proxy in front of a server: it loses replies on request, or ends TLS."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from types import TracebackType

from tests.support.valkey import free_port


class Proxy:
    """Listens on 127.0.0.1 and forwards to ``target``. ``lose_replies(n)`` cuts the next n that answer."""

    def __init__(self, target: int, tls: ssl.SSLContext | None = None) -> None:
        self.port = free_port()
        self._target = target
        self._tls = tls
        self._to_lose = 0
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", self.port))

    def lose_replies(self, count: int) -> None:
        """From now on: the request arrives, its reply does not."""
        self._to_lose = count

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
        threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
        self._pump(server, client, True)

    def _pump(self, source: socket.socket, sink: socket.socket, replies: bool) -> None:
        try:
            while data := source.recv(65536):
                if replies and self._to_lose > 0:
                    self._to_lose -= 1
                    break
                sink.sendall(data)
        except OSError:
            pass
        _close(source)
        _close(sink)


def _close(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
