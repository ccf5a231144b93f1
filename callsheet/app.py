"""The bare Celery app and its settings.

Tasks bind to **this** app, never to a host's current app: a Django or Flask process keeps its own Celery
beside it. Worker and beat parts join by ``include``, which only workers import, so producers load neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from celery import Celery
from celery.app.backends import by_url

from callsheet import wiring
from callsheet.firing import firing
from callsheet.guard import GuardedTask
from callsheet.mixed import Lent, counting
from callsheet.settings import Settings, urls

CONTROL_QUEUE = "callsheet.control"  # ticks of the controllers; also the default queue

INCLUDE = (
    "callsheet.tasks.generate",
    "callsheet.tasks.ticket",
    "callsheet.tasks.weights",
    "callsheet.tasks.panel",
    "callsheet.beat.schedule",
    "callsheet.workers.boot",
)


class FixedCelery(Celery):
    """Celery at the broker and backend that it was given.

    In Celery itself ``CELERY_BROKER_URL`` and ``CELERY_RESULT_BACKEND`` win over every setting; inside a host
    they mean the host's own app.
    """

    def broker(self) -> str:
        """URL of the broker, as kombu reads it."""
        return str(self.conf["broker_url"])

    def connection_for_read(self, url: str | None = None, **kwargs: Any) -> Any:
        """A broker connection of ours, to consume."""
        return super().connection_for_read(url or self.broker(), **kwargs)

    def connection_for_write(self, url: str | None = None, **kwargs: Any) -> Any:
        """A broker connection of ours, to publish: gives up within seconds."""
        options = {**publishing(self.broker()), **(kwargs.pop("transport_options", None) or {})}
        return super().connection_for_write(url or self.broker(), transport_options=options, **kwargs)

    def _get_backend(self) -> Any:
        kind, url = by_url(self.conf["result_backend"], self.loader)
        return firing(self.backend_class(kind))(app=self, url=url)

    def backend_class(self, kind: type) -> type:
        """The class of the result backend."""
        return kind


class CallsheetCelery(FixedCelery):
    """Our app: takes broker and backend from callsheet's settings only."""

    amqp_cls = "callsheet.broker:BrokerAMQP"
    control_cls = "callsheet.tasks.revoke:JobControl"

    def broker(self) -> str:
        """URL of our broker."""
        return urls.for_broker(wiring.settings().broker_url)

    def backend_class(self, kind: type) -> type:
        """Our backend knows about hosts."""
        return counting(kind)

    @contextmanager
    def producer_or_acquire(self, producer: Any = None) -> Iterator[Any]:
        """The producer given, else one of ours, lent (see ``mixed.py``)."""
        with super().producer_or_acquire(producer) as found:
            yield found if producer is not None else Lent(found)

    def use(self, settings: Settings) -> None:
        """Work with these settings from now on in this process; open connections are let go."""
        wiring.configure(settings)
        if self.configured:
            self.conf.update(celery_config(settings))
        self._pool = None
        self.amqp._producer_pool = None
        self._backend_cache = None
        self._local.backend = None


def publishing(broker: str) -> dict[str, Any]:
    """Transport options of a connection that publishes: whoever waits for it is told within seconds.

    A consumer's must be patient instead: it waits for messages.
    """
    if not broker.startswith(("redis", "sentinel")):
        return {}
    half_s = wiring.settings().connect_timeout_s / 2
    return {
        "socket_timeout": half_s,
        "socket_connect_timeout": half_s,
        "max_retries": 1,
        "interval_start": 0.05,
        "interval_step": 0,
        "interval_max": 0.05,
    }


def celery_config(settings: Settings) -> dict[str, Any]:
    """Celery's settings for ours. Each line that departs from Celery's default says why."""
    return {**_wire(settings), **_delivery(settings), **_worker(), **_connections(settings)}


def _wire(settings: Settings) -> dict[str, Any]:
    """Only JSON: a broker message must never be able to run code."""
    return {
        "broker_url": urls.for_broker(settings.broker_url),
        "result_backend": urls.for_backend(settings.store_url),  # outcomes lie beside the records
        "task_serializer": "json",
        "result_serializer": "json",
        "event_serializer": "json",
        "accept_content": ["json"],
        "result_accept_content": ["json"],
        "timezone": "UTC",
    }


def _delivery(settings: Settings) -> dict[str, Any]:
    """A ticket is acknowledged last and never brought back by Celery: the store heals lost work."""
    return {
        "task_acks_late": True,
        "task_acks_on_failure_or_timeout": True,
        "task_reject_on_worker_lost": False,
        "task_ignore_result": True,  # tickets; outcomes are written by deliver under the job id
        "task_store_errors_even_if_ignored": False,
        "task_default_queue": CONTROL_QUEUE,
        "task_always_eager": settings.task_always_eager,
        "result_expires": settings.retention_s,  # results live as long as records
        "result_chord_retry_interval": 1.0,
    }


def _worker() -> dict[str, Any]:
    """One ticket at a time, first queue first."""
    return {
        "include": list(INCLUDE),
        "worker_concurrency": 1,
        "worker_prefetch_multiplier": 1,
        "worker_disable_prefetch": True,  # multiplier 1 still reserves one more after a reconnect
        "worker_proc_alive_timeout": 120.0,  # a new child imports torch before it says that it is up
        "worker_cancel_long_running_tasks_on_connection_loss": False,  # True loses jobs when Redis is down
        "worker_send_task_events": True,
        "task_send_sent_event": False,  # a second message per ticket; jobs that wait are in the store anyway
    }


def _connections(settings: Settings) -> dict[str, Any]:
    """Producers fail within seconds and say so; workers reconnect for ever."""
    timeout_s = settings.connect_timeout_s
    return {
        "broker_connection_timeout": timeout_s,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_transport_options": {
            "queue_order_strategy": "callsheet.order:SubscriptionOrder",  # not round robin
            "priority_steps": [0],  # BRPOP looks at steps before queues: steps would break tier order
            "socket_connect_timeout": timeout_s,
            "socket_keepalive": True,
            **urls.transport_options(settings.broker_url, timeout_s),
        },
        "redis_socket_connect_timeout": timeout_s,
        "redis_retry_on_timeout": True,
        "redis_backend_health_check_interval": 30,
        "result_backend_transport_options": {
            "retry_policy": {"timeout": timeout_s},
            **urls.transport_options(settings.store_url, timeout_s),
        },
        "task_publish_retry_policy": {"max_retries": 1, "interval_start": 0.1, "interval_max": 0.1},
    }


app = CallsheetCelery("callsheet", set_as_current=False, task_cls=GuardedTask)
app.add_defaults(lambda: celery_config(wiring.settings()))
