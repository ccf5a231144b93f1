"""The store in Redis when the server is away, slow, full, strict or behind TLS."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callsheet import errors
from callsheet.records.states import State
from callsheet.store.redis_store import RedisStore
from tests.support.jobs import QUEUE, new_job, op, submitted
from tests.support.proxy import Proxy
from tests.support.valkey import Valkey, free_port


def store_at(url: str, prefix: str, timeout_s: float = 3.0) -> RedisStore:
    return RedisStore.from_url(url, retention_s=60, connect_timeout_s=timeout_s, prefix=prefix)


def test_no_server_is_told_in_under_5_seconds(prefix: str) -> None:
    port = free_port()
    store = store_at(f"redis://app:secret@127.0.0.1:{port}/0", prefix)
    start = time.monotonic()
    with pytest.raises(errors.Unreachable, match=rf"127\.0\.0\.1:{port}.*callsheet doctor") as caught:
        store.submit(new_job(), op=op())
    assert time.monotonic() - start < 5
    assert "secret" not in str(caught.value)
    assert caught.value.exit_code == 5


def test_a_server_that_never_answers_is_told_within_the_limit(prefix: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        store = store_at(f"redis://127.0.0.1:{deaf.getsockname()[1]}/0", prefix, timeout_s=0.6)
        start = time.monotonic()
        with pytest.raises(errors.Unreachable):
            store.get("film")
        assert time.monotonic() - start < 0.6 * 1.5 + 0.3


class Parrot:
    """A server that answers every command with one error."""

    def __init__(self, line: bytes) -> None:
        self.line = line
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client:
            while data := client.recv(65536):
                client.sendall(self.line * data.count(b"*"))


@pytest.mark.parametrize(
    "line",
    [
        b"-LOADING Redis is loading the dataset in memory\r\n",
        b"-READONLY You can't write against a replica\r\n",
    ],
)
def test_a_server_that_cannot_serve_now_counts_as_unreachable(prefix: str, line: bytes) -> None:
    parrot = Parrot(line)
    store = store_at(f"redis://127.0.0.1:{parrot.port}/0?protocol=2", prefix, timeout_s=0.4)
    with pytest.raises(errors.Unreachable):
        store.counts()
    store.close()
    parrot.listener.close()


@pytest.fixture
def own_valkey() -> Iterator[Valkey]:
    with Valkey("--appendfsync", "always", aof=True) as server:
        yield server


def test_a_blip_is_bridged_and_scripts_load_again(own_valkey: Valkey, prefix: str) -> None:
    store = store_at(own_valkey.url, prefix)
    first = submitted(store)
    own_valkey.kill9()
    restart = threading.Timer(0.2, own_valkey.start)
    restart.start()
    second = submitted(store)
    restart.join()
    assert store.backlog_jobs(QUEUE) == [first, second]


def test_an_outage_ends_when_the_server_is_back(own_valkey: Valkey, prefix: str) -> None:
    store = store_at(own_valkey.url, prefix, timeout_s=0.2)
    submitted(store)
    own_valkey.stop()
    with pytest.raises(errors.Unreachable):
        store.counts()
    own_valkey.start()
    assert store.counts()[State.PENDING] == 1


def test_a_lost_reply_is_asked_again_and_counts_once(valkey: Valkey, prefix: str) -> None:
    with Proxy(valkey.port) as proxy:
        store = store_at(f"redis://127.0.0.1:{proxy.port}/0", prefix)
        store.set_quotas({QUEUE: 1}, op=op())
        proxy.lose_replies(1)
        assert store.submit(new_job("film"), op=op()).created
        submitted(store, "other")
        proxy.lose_replies(1)
        tickets = store.release(QUEUE, op=op())
        assert [ticket.id for ticket in tickets] == ["film.1"]
        assert store.published() == {QUEUE: 1}
        proxy.lose_replies(1)
        lease = store.claim(tickets[0], worker="w", token="t", lease_s=5)
        assert lease.attempt == 1  # type: ignore[union-attr]
        proxy.lose_replies(1)
        assert store.hand_back("film", 1, "t", reason="", op=op())
        assert store.get("film").preemptions == 1


def test_an_acl_user_with_password_works_and_a_wrong_one_is_told(valkey: Valkey, prefix: str) -> None:
    admin: Any = valkey.client()
    admin.execute_command("ACL", "SETUSER", "app", "on", ">p@ss:w/rd", f"~{prefix}*", "+@all")
    good = store_at(f"redis://app:p%40ss%3Aw%2Frd@127.0.0.1:{valkey.port}/0", prefix)
    assert submitted(good, "film") == "film"
    wrong = store_at(f"redis://app:wrong-secret@127.0.0.1:{valkey.port}/0", prefix)
    start = time.monotonic()
    with pytest.raises(errors.Unreachable, match="credentials") as caught:
        wrong.get("film")
    assert "wrong-secret" not in str(caught.value)
    assert time.monotonic() - start < 1
    admin.execute_command("ACL", "DELUSER", "app")


def test_a_full_server_is_told(prefix: str) -> None:
    with Valkey("--maxmemory", "1mb") as full:
        store = store_at(full.url, prefix)
        with pytest.raises(errors.Refused, match="out of memory"):
            submitted(store, prompt="x" * 1000)


def test_a_unix_socket_works(valkey: Valkey, prefix: str) -> None:
    store = store_at(valkey.unix_url, prefix)
    assert submitted(store, "film") == "film"
    gone = store_at("unix:///nowhere/valkey.sock", prefix, timeout_s=0.1)
    with pytest.raises(errors.Unreachable, match=r"/nowhere/valkey\.sock"):
        gone.counts()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
@pytest.mark.parametrize("spelling", ["required", "CERT_REQUIRED"])
def test_tls_is_checked(valkey: Valkey, prefix: str, tmp_path: Path, spelling: str) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*command, "-keyout", key, "-out", cert], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    with Proxy(valkey.port, tls=context) as proxy:
        url = f"rediss://localhost:{proxy.port}/0?ssl_cert_reqs={spelling}"
        assert submitted(store_at(f"{url}&ssl_ca_certs={cert}", prefix), "film") == "film"
        with pytest.raises(errors.Unreachable, match="certificate"):
            store_at(url, prefix, timeout_s=0.2).get("film")
