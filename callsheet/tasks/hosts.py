"""Host applications: Celery apps beside ours, whose tasks stand in one canvas with videos.

What follows a video in the host's canvas must reach the *host's* workers, and whoever waits for it looks
into the host's backend. So the record keeps what is needed to act for the host, where its code is not:
broker, backend, default queue and the options that go with them. It holds the host's passwords and is never
shown by the command line, the API, a log or a ``repr``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from celery import Celery, _state
from kombu.utils.json import dumps

from callsheet import wiring
from callsheet.app import CallsheetCelery, FixedCelery, publishing
from callsheet.firing import AWAY, Unfired
from callsheet.mixed import Lent

#: Settings of the host without which its broker or backend cannot be reached or read.
CARRIED = (
    "broker_use_ssl", "broker_transport_options", "redis_backend_use_ssl", "result_backend_transport_options",
)  # fmt: skip

FALLBACK = "default"  # what Celery calls the app that it makes up when there is none

Record = dict[str, Any]


class StandIn(FixedCelery):
    """Publishes for a host, and writes into its backend, in a process that does not have the host's code."""

    def __init__(self, record: Record) -> None:
        super().__init__("callsheet-host", set_as_current=False)
        self.record = record
        self.conf.update(_config(record, wiring.settings().connect_timeout_s))

    def backend_class(self, kind: type) -> type:
        """The host's backend, to be written only."""
        return type(f"WriteOnly{kind.__name__}", (WriteOnly, kind), {})


class WriteOnly:
    """Mixed into a host's backend: nobody here waits for the results of the host's tasks."""

    def on_task_call(self, producer: Any, task_id: str) -> None:
        """Celery's hook at publishing, where a client's backend subscribes to the result."""


def _config(record: Record, limit_s: float) -> dict[str, Any]:
    """Celery's settings of a stand-in: the host's, and time limits of ours where the host has none."""
    options = record["options"]
    transport = {**publishing(record["broker"]), **options.get("broker_transport_options", {})}
    backend = {"retry_policy": {"timeout": limit_s}, **options.get("result_backend_transport_options", {})}
    return {
        **options,
        "broker_url": record["broker"],
        "result_backend": record["backend"],
        "result_expires": record["expires"],
        "task_default_queue": record["queue"],
        "accept_content": ["json"],
        "broker_transport_options": transport,
        "broker_connection_timeout": limit_s,
        "task_publish_retry_policy": {"max_retries": 1, "interval_start": 0.1, "interval_max": 0.1},
        "redis_socket_connect_timeout": limit_s / 2,
        "redis_socket_timeout": limit_s,
        "result_backend_transport_options": backend,
    }


def record_of(host: Celery) -> Record:
    """What a stand-in for this host must know."""
    if isinstance(host, StandIn):
        return host.record
    conf = host.conf
    urls = conf.broker_write_url or host.connection_for_write().as_uri(include_password=True)
    return {
        "broker": urls if isinstance(urls, str) else ";".join(urls),
        "backend": str(conf.result_backend or "disabled://"),
        "queue": conf.task_default_queue,
        "expires": host.backend.expires,
        "options": {name: conf[name] for name in CARRIED if conf.get(name)},
    }


_stand_ins: dict[str, StandIn] = {}


def stand_in(record: Mapping[str, Any]) -> StandIn:
    """The stand-in for a host; made once per process and host."""
    key = dumps(record, sort_keys=True)
    if key not in _stand_ins:
        _stand_ins[key] = StandIn(dict(record))
    return _stand_ins[key]


def check_reachable(app: Celery) -> None:
    """Raises Unfired when a host's broker does not answer. Ours is not asked: we are its workers."""
    if not isinstance(app, StandIn):
        return
    try:
        with app.connection_for_write() as connection:
            connection.default_channel  # noqa: B018  connects
    except AWAY as fault:
        raise Unfired(f"the host's broker does not answer: {fault}") from fault


def is_foreign(app: Celery) -> bool:
    """Whether an app is a host's (or stands in for one)."""
    return not isinstance(app, CallsheetCelery) and app.main != FALLBACK


def current_host() -> Celery | None:
    """The host's app that is current in this thread, else the process's default one."""
    current = _state._tls.current_app or _state.default_app
    return current if current is not None and is_foreign(current) else None


def is_lent_by_host(producer: Any) -> bool:
    """Whether a group that is not ours lends its producer to a member."""
    return producer is not None and not isinstance(producer, Lent)


def host_of_producer(producer: Any) -> Celery | None:
    """The host that leads a group, told by the producer that it lends to the members."""
    place = _place(producer.connection)
    return next((host for host in _hosts() if _place(host.connection_for_write()) == place), None)


def _hosts() -> Iterable[Celery]:
    current = current_host()
    alive = [app for app in _state._get_active_apps() if is_foreign(app) and not isinstance(app, StandIn)]
    return sorted(alive, key=lambda app: app is not current)


def _place(connection: Any) -> str:
    return str(connection.as_uri(include_password=True))
