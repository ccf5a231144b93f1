"""A host application: its own Celery app, broker, backend, queue and tasks, which knows nothing of ours.

As ``celery -A tests.support.host_app`` it is the host's worker: importing ``generate_video`` is all that
it does to have videos in its chains.
"""

from __future__ import annotations

import json
import os
from typing import Any

from celery import Celery, Task, chain

from callsheet import generate_video  # what a host's module does

QUEUE = "host-work"
SIDE, OWN = "host-side", "host-own"  # by the host's routes, and by a task's own attribute
NOTES = "host-notes"  # Redis list in the host's backend


def make_host(url: str, name: str = "host", queue: str = QUEUE, *, tasks: bool = True) -> Celery:
    """A host's app whose broker and backend are one Redis, with the tasks below if it is the one host."""
    host = Celery(name, broker=url, backend=url)
    host.conf.update(task_default_queue=queue, task_routes={"host.routed": {"queue": SIDE}})
    if tasks:
        _add_tasks(host)
    return host


def _add_tasks(host: Celery) -> None:
    @host.task(name="host.shout", shared=False)
    def shout(film: dict[str, Any]) -> str:
        return f"{film['model']} {film['seed']}!"

    @host.task(name="host.collect", shared=False)
    def collect(parts: list[Any]) -> list[Any]:
        return [part["seed"] if isinstance(part, dict) else part for part in parts]

    @host.task(name="host.make_prompt", shared=False)
    def make_prompt() -> str:
        return "a dog that the host thought of"

    @host.task(name="host.number", shared=False)
    def number(value: int) -> int:
        return value

    @host.task(name="host.broken", shared=False)
    def broken() -> None:
        raise ValueError("the host is broken")

    @host.task(name="host.routed", shared=False)
    def routed(_film: Any) -> str:
        return SIDE

    @host.task(name="host.owned", shared=False, queue=OWN)
    def owned(_film: Any) -> str:
        return OWN

    @host.task(name="host.replaced", shared=False, bind=True)
    def replaced(self: Task, count: int) -> Any:
        """A video takes its place, or two, one after the other."""
        films = [generate_video.si(prompt="a cat", model="tiny-wan", steps=2, seed=n) for n in range(count)]
        return self.replace(films[0] if count == 1 else chain(*films))

    @host.task(name="host.note", shared=False, bind=True)
    def note(self: Task, said: Any, about: str = "") -> str:
        """Write down under which id it was called, with what."""
        what = said["seed"] if isinstance(said, dict) else said
        self.backend.client.rpush(NOTES, json.dumps([about, self.request.id, what]))
        return about


def notes(host: Celery, about: str) -> list[tuple[str, Any]]:
    """(task id, what was said) of each call of ``host.note`` about something."""
    lines = [json.loads(line) for line in host.backend.client.lrange(NOTES, 0, -1)]
    return [(task_id, said) for topic, task_id, said in lines if topic == about]


if os.environ.get("HOST_URL"):
    app = make_host(os.environ["HOST_URL"])
