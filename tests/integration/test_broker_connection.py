"""Publishing keeps one Redis client per channel, also across a restart of the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kombu.transport.redis import Channel

from callsheet.app import app
from callsheet.broker import BrokerConnection, OneClient
from callsheet.settings import Settings
from tests.support.valkey import Valkey


def publish(connection: Any, body: str) -> None:
    with connection.SimpleQueue("films") as queue:
        queue.put(body)


def test_a_client_is_made_once_per_pool() -> None:
    class Client:
        def __init__(self, connection_pool: object) -> None:
            self.connection_pool = connection_pool

    keep, first, second = OneClient(Client), object(), object()
    one = keep(connection_pool=first)
    assert keep(connection_pool=first) is one
    assert keep(connection_pool=second) is not one
    assert keep(connection_pool=second).connection_pool is second


def test_our_app_s_connections_keep_their_client() -> None:
    with Valkey() as valkey, app.amqp.Connection(valkey.url) as connection:
        assert isinstance(connection, BrokerConnection)
        assert_keeps_client(connection.default_channel)


def test_what_publishes_tickets_keeps_its_client(tmp_path: Path) -> None:
    with Valkey() as valkey:
        app.use(Settings(broker_url=valkey.url, data_dir=tmp_path))
        with app.producer_or_acquire() as producer:
            assert_keeps_client(producer.channel)


def assert_keeps_client(channel: Any) -> None:
    assert isinstance(channel, Channel)
    assert channel._create_client() is channel._create_client()


def test_a_clone_keeps_it_too_and_other_transports_are_left_alone() -> None:
    with app.amqp.Connection("memory://") as connection, connection.clone() as clone:
        assert isinstance(clone, BrokerConnection)
        publish(clone, "film")
        with clone.SimpleQueue("films") as queue:
            assert queue.get(timeout=5).payload == "film"


def test_messages_arrive_before_and_after_the_server_was_restarted() -> None:
    with Valkey(aof=True) as valkey, app.amqp.Connection(valkey.url) as connection:
        publish(connection, "before")
        valkey.restart()
        connection.ensure(connection, publish, max_retries=5, interval_start=0.1)(connection, "after")
        with connection.SimpleQueue("films") as queue:
            got = [queue.get(timeout=5) for _ in range(2)]
            assert [message.payload for message in got] == ["before", "after"]
            for message in got:
                message.ack()
