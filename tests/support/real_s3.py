"""A real S3 server for tests: one that runs already, or one that a script starts. None without either.

``python -m tests.support.real_s3 [arguments for pytest]`` runs tests/integration/test_s3.py with one.

* TEST_S3_ENDPOINT, _REGION, _BUCKET, _ACCESS_KEY_ID and _SECRET_ACCESS_KEY name one that runs (CALLSHEET_...
  would be settings);
* RADOSGW names a script that starts one: called with a folder, a port for S3 and a port of its own, makes
  the keys testkey and testsecret, and leaves the pids of its daemons in the folder's ``run/*.pid``.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from callsheet.artifacts.objects import Objects, open_objects
from tests.support.valkey import free_port

NAMES = "TEST_S3_"
START_S = 120  # how long the script may take
TESTS = "tests/integration/test_s3.py"
HOW = """No S3 server to test against; nothing was run. Either name one that runs (its bucket is made):
  TEST_S3_ENDPOINT=http://127.0.0.1:9000 TEST_S3_BUCKET=films \\
  TEST_S3_ACCESS_KEY_ID=... TEST_S3_SECRET_ACCESS_KEY=... make test-s3
or a script that starts one (called with a folder and two ports), and install what it starts; Ceph on Debian:
  apt-get install --no-install-recommends ceph-mon ceph-osd ceph-common radosgw
  make test-s3 RADOSGW=path/to/radosgw.sh"""


@dataclass(frozen=True, slots=True)
class RealS3:
    """Where it is, and the keys to it."""

    endpoint: str
    access_key_id: str
    secret_access_key: str
    region: str = "default"
    bucket: str = "callsheet-test"

    @classmethod
    def named(cls, variables: Mapping[str, str] = os.environ) -> RealS3 | None:
        """The server that the variables name."""
        ours = {name: value for name, value in variables.items() if name.startswith(NAMES)}
        given = {name.removeprefix(NAMES).lower(): value for name, value in ours.items()}
        return cls(**given) if given else None

    def variables(self) -> dict[str, str]:
        """The variables that name it."""
        return {f"{NAMES}{name.upper()}": getattr(self, name) for name in self.__slots__}

    def opened(self, prefix: str) -> Objects:
        """Objects in its bucket."""
        return open_objects(
            f"s3://{self.bucket}/{prefix}",
            s3_endpoint=self.endpoint,
            s3_region=self.region,
            s3_access_key_id=self.access_key_id,
            s3_secret_access_key=self.secret_access_key,
            s3_allow_http=True,
        )

    def make_bucket(self) -> None:
        """Make the bucket; no error when it is there. Raises urllib.error.HTTPError."""
        request = urllib.request.Request(
            f"{self.endpoint}/{self.bucket}", method="PUT", headers=self._signed(time.time())
        )
        try:
            urllib.request.urlopen(request, timeout=20).close()
        except urllib.error.HTTPError as error:
            if error.code != 409:  # it is there
                raise

    def _signed(self, now: float) -> dict[str, str]:
        """Headers of the request, signed by AWS Signature Version 4 (AWS General Reference)."""
        at = datetime.datetime.fromtimestamp(now, datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
        headers = {
            "host": urlsplit(self.endpoint).netloc,
            "x-amz-content-sha256": hashlib.sha256(b"").hexdigest(),
            "x-amz-date": at,
        }
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        names, scope = ";".join(headers), f"{at[:8]}/{self.region}/s3/aws4_request"
        canonical = f"PUT\n/{self.bucket}\n\n{lines}\n{names}\n{headers['x-amz-content-sha256']}"
        text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = f"AWS4{self.secret_access_key}".encode()
        for part in (*scope.split("/"), text):
            key = hmac.digest(key, part.encode(), "sha256")
        credential = f"Credential={self.access_key_id}/{scope}, SignedHeaders={names}, Signature={key.hex()}"
        return headers | {"Authorization": f"AWS4-HMAC-SHA256 {credential}"}


@contextmanager
def started(script: str) -> Iterator[RealS3]:
    """The server that the script starts; its daemons are killed by their pids. Raises RuntimeError."""
    folder = Path(tempfile.mkdtemp(prefix="callsheet-s3-"))
    port = free_port()
    try:
        done = subprocess.run(
            ["bash", script, str(folder), str(port), str(free_port())],
            capture_output=True,
            text=True,
            timeout=START_S,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{script} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        yield RealS3(f"http://127.0.0.1:{port}", "testkey", "testsecret")
    finally:
        for file in folder.glob("run/*.pid"):
            with suppress(ProcessLookupError):
                os.kill(int(file.read_text()), signal.SIGKILL)  # their data goes too
        shutil.rmtree(folder, ignore_errors=True)


def _tested(server: RealS3, arguments: list[str]) -> int:
    server.make_bucket()
    command = [sys.executable, "-m", "pytest", TESTS, *arguments]
    return subprocess.run(command, env=os.environ | server.variables(), check=False).returncode


def main(arguments: list[str]) -> int:
    """Run the tests of S3 against a real server; exit code of pytest, 2 when there is no server."""
    named, script = RealS3.named(), os.environ.get("RADOSGW", "")
    if named:
        return _tested(named, arguments)
    if not script or not shutil.which("radosgw"):
        print(HOW, file=sys.stderr)
        return 2
    with started(script) as server:
        return _tested(server, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
