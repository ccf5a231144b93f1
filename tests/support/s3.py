"""A small S3 server in this process: enough of the protocol for our verbs, with faults that real ones have.

It checks no signatures.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import parse_qs, unquote, urlsplit


class FakeS3:
    """``with FakeS3() as s3``: ``s3.endpoint`` serves the bucket ``films``, ``s3.objects`` are in it."""

    def __init__(
        self, *, status: int = 0, honours_create: bool = True, failures: int = 0, delay_s: float = 0.0
    ) -> None:
        self.status = status  # answer everything with this error; 0 = work
        self.honours_create = honours_create  # False: ignore If-None-Match, as some servers do
        self.failures = failures  # answer the first so many requests with 503
        self.delay_s = delay_s  # before each answer
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.requests: list[str] = []
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def endpoint(self) -> str:
        """Its URL."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> FakeS3:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class _Server(ThreadingHTTPServer):
    def __init__(self, s3: FakeS3) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.s3 = s3


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    @property
    def s3(self) -> FakeS3:
        return self.server.s3

    def log_message(self, format: str, *args: object) -> None:
        self.s3.requests.append(f"{self.command} {self.path}")

    def do_PUT(self) -> None:
        body = self._body()
        if self._refused():
            return
        if "uploadId" in self.query:
            self.s3.uploads[self.query["uploadId"][0]][int(self.query["partNumber"][0])] = body
        elif self.headers.get("If-None-Match") and self.s3.honours_create and self.key in self.s3.objects:
            self._error(412, "PreconditionFailed")
            return
        else:
            self.s3.objects[self.key] = body
        self._answer(200, etag=body)

    def do_POST(self) -> None:
        body = self._body()
        if self._refused():
            return
        if "uploads" in self.query:
            upload = str(len(self.s3.uploads) + 1)
            self.s3.uploads[upload] = {}
            tags = f"<Bucket>films</Bucket><Key>{self.key}</Key><UploadId>{upload}</UploadId>"
            self._xml("InitiateMultipartUploadResult", tags)
        elif "delete" in self.query:
            keys = re.findall(r"<Key>(.*?)</Key>", body.decode())
            found = "".join(
                f"<Deleted><Key>{key}</Key></Deleted>"
                for key in keys
                if self.s3.objects.pop(key, b"") is not None
            )
            self._xml("DeleteResult", found)
        else:
            parts = self.s3.uploads.pop(self.query["uploadId"][0])
            self.s3.objects[self.key] = b"".join(parts[number] for number in sorted(parts))
            self._xml("CompleteMultipartUploadResult", '<ETag>"1"</ETag>')

    def do_GET(self) -> None:
        if self._refused():
            return
        if "list-type" in self.query:
            self._list(self.query.get("prefix", [""])[0])
        elif self.key in self.s3.objects:
            self._answer(200, self.s3.objects[self.key], etag=self.s3.objects[self.key])
        else:
            self._error(404, "NoSuchKey")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        if self._refused():
            return
        self.s3.uploads.pop(self.query.get("uploadId", [""])[0], None)
        self.s3.objects.pop(self.key, None)
        self._answer(204)

    # -- one layer down

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.path).query, keep_blank_values=True)

    @property
    def key(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix("/films").lstrip("/")

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _refused(self) -> bool:
        time.sleep(self.s3.delay_s)
        if self.s3.failures > 0:
            self.s3.failures -= 1
            self._error(503, "SlowDown")
        elif self.s3.status:
            self._error(
                self.s3.status,
                {403: "AccessDenied", 404: "NoSuchBucket"}.get(self.s3.status, "InternalError"),
            )
        else:
            return False
        return True

    def _list(self, prefix: str) -> None:
        items = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f'<ETag>"1"</ETag><Size>{len(data)}</Size></Contents>'
            for key, data in sorted(self.s3.objects.items())
            if key.startswith(prefix)
        )
        self._xml("ListBucketResult", f"<IsTruncated>false</IsTruncated>{items}")

    def _xml(self, root: str, inner: str) -> None:
        self._answer(200, f'<?xml version="1.0" encoding="UTF-8"?><{root}>{inner}</{root}>'.encode())

    def _error(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def _answer(self, status: int, body: bytes = b"", *, etag: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hashlib.md5(etag).hexdigest()}"')
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
