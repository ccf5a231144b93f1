"""Links, chains, groups and chords of a job: kept in its record as plain JSON, carried out by ``deliver``.

Beside Celery's own options the record says for whom that is done (see ``hosts.py``)::

    host     the app whose tasks follow the job, when they are not ours
    counter  the app whose backend counts the chord, or leads the group, when ours does not
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from celery import Celery
from celery.canvas import Signature, maybe_signature
from kombu.utils.json import dumps, loads

from callsheet.app import app
from callsheet.errors import RequestError
from callsheet.mixed import counted_by_us, counting_host
from callsheet.tasks.hosts import (
    StandIn,
    current_host,
    host_of_producer,
    is_lent_by_host,
    record_of,
    stand_in,
)

LISTS = ("link", "link_error", "chain")
PARTS = ("tasks", "header", "body")  # where groups, chains and chords keep their signatures


class Acting(NamedTuple):
    """In whose name ``deliver`` publishes what follows a job."""

    home: Celery  # whose tasks may follow
    leader: Celery  # publishes groups and counts their chords
    counter: Celery  # counts the chord in which the job's chain ends


#: None outside of a delivery.
_acting: ContextVar[Acting | None] = ContextVar("callsheet_acting", default=None)


def freeze_canvas(
    options: Mapping[str, Any], *, producer: Any = None, ignore_result: bool = False
) -> dict[str, Any]:
    """The JSON form of a canvas; empty when the job stands alone.

    Raises RequestError when a signature holds what JSON cannot carry, or hosts differ.
    """
    canvas: dict[str, Any] = {k: _as_list(v) if k in LISTS else v for k, v in options.items()}
    if ignore_result:
        canvas["ignore_result"] = True
    if not canvas:
        return {}
    host, counter = _host_of(canvas), _counter_of(canvas, producer)
    frozen = _plain(canvas)
    if host is not None:
        frozen["host"] = record_of(host)
        _route(frozen, host)
    if counter is not None:
        frozen["counter"] = record_of(counter)
    _give_ids(frozen)
    return _plain(frozen)


def follower_app(canvas: Mapping[str, Any]) -> Celery:
    """The app that publishes what follows: ours, or a stand-in for the host's."""
    record = canvas.get("host") or canvas.get("counter")
    return stand_in(record) if record else app


def counting_app(canvas: Mapping[str, Any]) -> Celery:
    """The app whose backend counts the chord, and that publishes its body."""
    if canvas.get("counter"):
        return stand_in(canvas["counter"])
    if not canvas.get("host"):
        return app
    ours = {"backend": app.conf["result_backend"], "expires": app.backend.expires, "options": {}}
    return stand_in({**canvas["host"], **ours})


@contextmanager
def acting_for(canvas: Mapping[str, Any], *, firing: bool = False) -> Iterator[None]:
    """What is submitted here belongs to this canvas; ``firing``: it is the body of its chord."""
    home, counter = follower_app(canvas), counting_app(canvas)
    token = _acting.set(Acting(home, counter if firing else home, counter))
    try:
        yield
    finally:
        _acting.reset(token)


def _here(role: str) -> Celery | None:
    """The host for which this process acts now, if any."""
    acting = _acting.get()
    if acting is None:
        return current_host()
    app_in_role = getattr(acting, role)
    return app_in_role if isinstance(app_in_role, StandIn) else None


def _host_of(canvas: Mapping[str, Any]) -> Celery | None:
    """The app whose tasks follow this job, or None when all of them are ours."""
    foreign = [leaf for leaf in _leaves(canvas) if not _is_ours(leaf["task"])]
    apps = {id(own): own for leaf in foreign if (own := _own_app(leaf)) is not None}
    records = {dumps(record_of(one), sort_keys=True) for one in apps.values()}
    if len(records) > 1:
        raise RequestError(
            "what follows this job belongs to two Celery apps with different brokers; nothing was submitted. "
            "Let one of the apps' tasks start the other's."
        )
    return next(iter(apps.values()), _here("home") if foreign else None)


def _is_ours(name: str) -> bool:
    """Told by the name: Celery shares an app's tasks with every other one that is finalized later."""
    return name.startswith(("callsheet.", "celery."))


def _own_app(leaf: Mapping[str, Any]) -> Celery | None:
    own: Any = getattr(leaf, "_app", None)
    if hasattr(own, "_get_current_object"):  # of a shared_task
        own = own._get_current_object()
    return None if own is app or isinstance(own, StandIn) else own


def _counter_of(canvas: Mapping[str, Any], producer: Any) -> Celery | None:
    """The foreign app that leads the group or counts the chord of this job or of its chain's end."""
    places = [canvas, *(step.get("options") or {} for step in canvas.get("chain") or ())]
    chords = [place["chord"] for place in places if place.get("chord")]
    if any(counted_by_us(chord) for chord in chords):
        return None
    if canvas.get("replaced_task_nesting"):  # it takes a task's place: who waits for that looks where it ran
        return _here("counter")
    if is_lent_by_host(producer):
        return _here("leader") if _acting.get() else host_of_producer(producer)
    known = (counting_host(place.get("group_id")) for place in places)
    return next(filter(None, known), _here("counter") if chords else None)


def _plain(canvas: Mapping[str, Any]) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = loads(dumps(canvas))
    except (TypeError, ValueError) as fault:
        raise RequestError(
            f"the links or chain of this job cannot be written as JSON ({fault}); nothing was submitted. "
            "Pass only JSON values in the signatures beside generate_video."
        ) from fault
    return plain


def _route(frozen: Mapping[str, Any], host: Celery) -> None:
    """Write down the queues that the host's own settings choose: a stand-in does not know its tasks."""
    if isinstance(host, StandIn):
        return
    for leaf in _leaves(frozen):
        if not _is_ours(leaf["task"]):
            task = host.tasks.get(leaf["task"])
            own = {k: v for k, v in (task._get_exec_options() if task else {}).items() if v is not None}
            options = {**own, **leaf["options"]}
            route = host.amqp.router.route(dict(options), leaf["task"], leaf["args"], leaf["kwargs"], task)
            queue = route.get("queue")
            leaf["options"] = {**options, "queue": getattr(queue, "name", queue)} if queue else options


def _give_ids(frozen: dict[str, Any]) -> None:
    """Fixed ids for links, with all that is in them: a delivery that is repeated repeats these."""
    for key in ("link", "link_error"):
        links = [maybe_signature(link, app=app) for link in frozen.get(key, ())]
        for link in links:
            link.freeze()
        if links:
            frozen[key] = links


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _leaves(canvas: Mapping[str, Any]) -> Iterable[Signature | dict[str, Any]]:
    """All simple signatures in a canvas, however deep."""
    for key in (*LISTS, "chord"):
        if canvas.get(key):
            yield from _within(canvas[key])


def _within(node: Any) -> Iterable[Signature | dict[str, Any]]:
    if isinstance(node, list | tuple):
        for item in node:
            yield from _within(item)
    elif isinstance(node, dict) and node.get("task"):
        inner = node.get("kwargs") or {}
        parts = [inner[k] for k in PARTS if k in inner] if node.get("subtask_type") else []
        if parts:
            yield from _within(parts)
        else:
            yield node
        for key in (*LISTS, "chord"):
            yield from _within((node.get("options") or {}).get(key))
