"""The helper that runs Valkey for tests keeps its promises."""

from __future__ import annotations

import pytest
import redis

from tests.support.valkey import Valkey


def test_answers_on_tcp_and_unix_socket(valkey: Valkey) -> None:
    by_socket = redis.Redis.from_url(valkey.unix_url)
    assert valkey.client().ping()
    assert by_socket.ping()
    by_socket.close()


def test_url_fixture_is_empty(valkey_url: str) -> None:
    assert redis.Redis.from_url(valkey_url).dbsize() == 0


def test_aof_survives_a_crash_and_the_port_stays() -> None:
    with Valkey("--appendfsync", "always", aof=True) as server:
        server.client().set("film", "kept")
        url = server.url
        server.kill9()
        with pytest.raises(redis.ConnectionError):
            server.client().ping()
        server.start()
        assert server.url == url
        assert server.client().get("film") == "kept"


def test_without_aof_a_restart_forgets() -> None:
    with Valkey() as server:
        server.client().set("film", "lost")
        server.restart()
        assert server.client().get("film") is None


def test_a_server_that_cannot_start_says_why() -> None:
    server = Valkey("--no-such-option", "1")
    with pytest.raises(RuntimeError, match="no-such-option"):
        server.start()
    server.remove()
