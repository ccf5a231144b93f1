"""Plain Celery, for comparison: a bare app at its leanest, with no result backend and two small tasks."""

from __future__ import annotations

import os
import time

import redis
from celery import Celery

URL_VARIABLE = "BENCHMARK_PLAIN_URL"  # tells the worker its broker

app = Celery("plain", broker=os.environ.get(URL_VARIABLE), set_as_current=False)
_client: list[redis.Redis] = []


def use(url: str) -> None:
    """Publish to this broker from now on; open connections are let go."""
    app.close()
    app.conf.broker_url = url
    app.amqp._producer_pool = None


@app.task(name="plain.add", ignore_result=True)
def add(x: int, y: int) -> int:
    """As in every tutorial."""
    return x + y


@app.task(name="plain.stamp", ignore_result=True)
def stamp(key: str) -> None:
    """Push the time at which this body began, in seconds since the epoch, to a list on the broker."""
    began = time.time()
    if not _client:
        _client.append(redis.Redis.from_url(app.conf.broker_url))
    _client[0].rpush(key, repr(began))
