"""Links, chains, groups and chords of a job: kept in its record as plain JSON, carried out by ``deliver``.

A host application has a Celery app and a broker of its own. What follows a video in the host's chain must
reach the
*host's* workers, so the canvas keeps the host's broker, backend and default queue beside the signatures.
They are never shown by the command line or the API.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from celery import Celery, current_app
from celery.canvas import Signature
from kombu.utils.json import dumps, loads

from callsheet.app import app
from callsheet.errors import RequestError

SIGNATURES = ("link", "link_error", "chain")


def freeze_canvas(
    options: Mapping[str, Any], *, producer: Any = None, ignore_result: bool = False
) -> dict[str, Any]:
    """The JSON form of a canvas; empty when the job stands alone.

    Raises RequestError when a signature holds what JSON cannot carry.
    """
    canvas: dict[str, Any] = {k: _as_list(v) if k in SIGNATURES else v for k, v in options.items()}
    if ignore_result:
        canvas["ignore_result"] = True
    host = host_of(canvas)
    if host is not None:
        canvas["host"] = {
            "broker": host.connection_for_write().as_uri(include_password=True),
            "backend": host.backend.as_uri(include_password=True),
            "queue": host.conf.task_default_queue,
            "keeps_chord": keeps_chord(host, producer),
        }
    try:
        frozen: dict[str, Any] = loads(dumps(canvas))
    except (TypeError, ValueError) as fault:
        raise RequestError(
            f"the links or chain of this job cannot be written as JSON ({fault}); nothing was submitted. "
            "Pass only JSON values in the signatures beside generate_video."
        ) from fault
    return frozen


def host_of(canvas: Mapping[str, Any]) -> Celery | None:
    """The foreign app whose tasks follow this job, or None when all of them are ours."""
    for signature in _signatures(canvas):
        if signature["task"] in app.tasks:
            continue
        own = getattr(signature, "_app", None)
        candidate = own if own is not None else current_app._get_current_object()
        if candidate is not app:
            return candidate
    return None


def keeps_chord(host: Celery, producer: Any) -> bool:
    """Whether the host's backend counts the chord: so when the host's app published the group."""
    if producer is None:
        return False
    uri: str = producer.connection.as_uri(include_password=True)
    return bool(uri == host.connection_for_write().as_uri(include_password=True))


def follower_app(canvas: Mapping[str, Any], *, chord: bool = False) -> Celery:
    """The app that publishes what follows: ours, or a stand-in for the host's.

    With ``chord=True`` its backend is the one that counts the chord.
    """
    host = canvas.get("host")
    if not host:
        return app
    backend = host["backend"] if host["keeps_chord"] or not chord else app.conf["result_backend"]
    return _stand_in(host["broker"], backend, host["queue"])


_stand_ins: dict[tuple[str, str, str], Celery] = {}


def _stand_in(broker: str, backend: str, queue: str) -> Celery:
    key = (broker, backend, queue)
    if key not in _stand_ins:
        made = Celery("callsheet-host", set_as_current=False, broker=broker, backend=backend)
        made.conf.update(
            task_default_queue=queue,
            accept_content=["json"],
            broker_read_url=broker,
            broker_write_url=broker,
        )
        _stand_ins[key] = made
    return _stand_ins[key]


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _signatures(canvas: Mapping[str, Any]) -> Iterable[Signature | dict[str, Any]]:
    """All simple signatures in a canvas, however deep."""
    for key in (*SIGNATURES, "chord"):
        if key in canvas:
            yield from _leaves(canvas[key])


def _leaves(node: Any) -> Iterable[Signature | dict[str, Any]]:
    if isinstance(node, list | tuple):
        for item in node:
            yield from _leaves(item)
    elif isinstance(node, dict) and node.get("task"):
        inner = node.get("kwargs") or {}
        parts = (
            [inner[k] for k in ("tasks", "header", "body") if k in inner] if node.get("subtask_type") else []
        )
        if parts:
            yield from _leaves(parts)
        else:
            yield node
