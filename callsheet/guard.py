"""A message that is no task message is dropped: in Celery it ends the worker, goes back, and ends the next.

Celery unpacks a body before anything can catch a fault in it. So its shape is looked at first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celery import Task
from celery.exceptions import InvalidTaskError
from kombu.exceptions import DecodeError


class GuardedTask(Task):
    """Base of all our tasks."""

    abstract = True
    Strategy = "callsheet.guard:guarded"


def guarded(task: Task, app: Any, consumer: Any, **kwargs: Any) -> Callable[..., Any]:
    """Celery's default strategy, behind a look at the message."""
    from celery.worker.strategy import default  # only workers need it

    handle: Callable[..., Any] = default(task, app, consumer, **kwargs)

    def look(message: Any, body: Any, *args: Any, **options: Any) -> Any:
        fault = shape_fault(message)
        if fault:
            raise InvalidTaskError(f"{fault}; the message is dropped")
        return handle(message, body, *args, **options)

    return look


def shape_fault(message: Any) -> str:
    """What is wrong with a message of Celery's protocol 2; "" for a sound one."""
    try:
        payload = message.payload
    except (DecodeError, UnicodeDecodeError) as error:
        return f"its body cannot be decoded: {error}"
    if not isinstance(payload, list) or len(payload) != 3:
        return "its body is not [args, kwargs, embed]"
    args, kwargs, embed = payload
    if not isinstance(args, list) or not isinstance(kwargs, dict) or not isinstance(embed, dict | None):
        return "its args, kwargs or embed are of another kind"
    return "" if isinstance(message.headers.get("id"), str) else "it has no id"
