"""A host with its own Redis and its own worker, and this process as the host's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from celery import Celery, _state

from callsheet import generate_video
from tests.support.host_app import OWN, QUEUE, SIDE, make_host
from tests.support.live import Live, until
from tests.support.valkey import Valkey

PASSWORD = "the-hosts-own-secret"
READY_S = 60.0


def host_env(url: str) -> dict[str, str]:
    """What a host's environment holds: Celery's own variables mean its broker."""
    return {"CELERY_BROKER_URL": url, "CELERY_RESULT_BACKEND": url}


@contextmanager
def hosted(live: Live) -> Iterator[Celery]:
    """The host's app, while its Valkey (with a password) and its worker run."""
    with Valkey("--requirepass", PASSWORD, password=PASSWORD) as valkey:
        host = make_host(valkey.url)
        live.start(
            "host",
            *("worker", "--pool", "solo", "--queues", f"{QUEUE},{SIDE},{OWN}", "--hostname", "host@test"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"),
            env={**host_env(valkey.url), "HOST_URL": valkey.url},
            module="tests.support.host_app",
        )
        until(lambda: "ready." in live.tail("host"), within_s=READY_S, what=f"host\n{live.tail('host')}")
        try:
            yield host
        finally:
            live.stop("host")
            host.close()


@contextmanager
def current(host: Celery, *, with_variables: bool = True) -> Iterator[None]:
    """This process is the host's: its app is current, and Celery's variables name its broker.

    Those win over the URLs of every plain Celery app in the process, so two hosts cannot have them.
    """
    before = _state._tls.current_app
    variables = host_env(host.conf["broker_url"]) if with_variables else {}
    saved = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    host.set_current()
    try:
        yield
    finally:
        _state._set_current_app(before)
        for name, value in saved.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


CAT = {"prompt": "a cat", "model": "tiny-wan", "steps": 2, "seed": 7}
SHOUTED = "tiny-wan 7!"  # what the host's task makes of it


def film(**changes: Any) -> Any:
    """A signature of one small film."""
    return generate_video.s(**{**CAT, **changes})


def films(*seeds: int) -> list[Any]:
    """One film for each seed."""
    return [film(seed=seed) for seed in seeds]


def held(**changes: Any) -> Any:
    """A film that does not start while it is cancelled."""
    return film(**changes).set(countdown=60)


def task(host: Celery, name: str, *args: Any, **kwargs: Any) -> Any:
    """A signature of one of the host's tasks."""
    return host.tasks[f"host.{name}"].s(*args, **kwargs)
