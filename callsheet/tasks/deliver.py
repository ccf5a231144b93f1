"""Delivery: the outcome of an ended job reaches the result backend, its chord and its links.

By the worker right after the job, or later by the deliverer on a beat: every part is marked in the store
once it is done, links are fired under fixed ids and a chord counts a member by its id, so a crash anywhere
is finished by somebody and nothing is counted twice.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from celery import Celery
from celery.app.task import Context

from callsheet.app import app
from callsheet.errors import CallsheetError
from callsheet.records.jobs import Job
from callsheet.records.states import CELERY, State
from callsheet.store.protocol import Store
from callsheet.tasks.canvas import follower_app
from callsheet.tasks.outcome import value_of

log = logging.getLogger(__name__)

BUSY_S = 60.0  # how long a deliverer that died blocks the next one


def deliver(store: Store, job_id: str) -> bool:
    """Deliver one ended job under its id and all its aliases.

    False when it is not due or somebody else is at it.
    """
    token = uuid.uuid4().hex
    if not store.lock_delivery(job_id, token=token, busy_s=BUSY_S):
        return False
    done: set[str] = set()
    while not store.mark_delivered(job_id, names=done, token=token):
        job = store.get(job_id)
        if not job.ended:
            return False
        names = {job.id: job.canvas, **store.aliases(job_id)}
        if set(names) <= done:
            return False  # the lock went to somebody else
        for name, canvas in names.items():
            _deliver_name(store, job, name, canvas)
        done = set(names)
    return True


def _deliver_name(store: Store, job: Job, name: str, canvas: Mapping[str, Any]) -> None:
    """The parts of one name, each once: what follows first, so that a waiter finds it under way."""
    parts: dict[str, Callable[[], None]] = {
        "links": lambda: _fire(job, name, canvas),
        "result": lambda: _store_result(job, name, canvas),
        "chord": lambda: _count_in_chord(job, name, canvas),
    }
    finished = store.delivered_parts(job.id)
    for part, act in parts.items():
        if f"{name}:{part}" not in finished:
            act()
            store.mark_part(job.id, f"{name}:{part}")


def _store_result(job: Job, name: str, canvas: Mapping[str, Any]) -> None:
    if not canvas.get("ignore_result"):
        app.backend.store_result(name, value_of(job), CELERY[job.state], request=_context(name, canvas))


def _count_in_chord(job: Job, name: str, canvas: Mapping[str, Any]) -> None:
    if canvas.get("chord"):
        backend = follower_app(canvas, chord=True).backend
        backend.on_chord_part_return(_context(name, canvas), CELERY[job.state], value_of(job))


def _fire(job: Job, name: str, canvas: Mapping[str, Any]) -> None:
    """Links and the rest of the chain after a success.

    Error links, and the chain's failure, after any other end.
    """
    if not any(canvas.get(key) for key in ("link", "link_error", "chain")):
        return
    home, value = follower_app(canvas), value_of(job)
    if isinstance(value, CallsheetError):
        context = _context(name, {**canvas, "chord": None})
        home.backend.mark_as_failure(name, value, request=context, state=CELERY[State.FAILED])
        return
    for index, link in enumerate(canvas.get("link") or ()):
        _follow(home, link, value, f"{name}:link:{index}", name, canvas)
    chain = list(canvas.get("chain") or ())
    if chain:
        _follow(home, chain.pop(), value, f"{name}:chain", name, canvas, chain=chain)


def _follow(
    home: Celery,
    link: dict[str, Any],
    value: Any,
    fixed: str,
    name: str,
    canvas: Mapping[str, Any],
    **options: Any,
) -> None:
    """Publish one follower under an id that is the same at every repeat.

    A follower that is refused fails alone.
    """
    signature = home.signature(link)
    signature.options.setdefault("task_id", str(uuid.uuid5(uuid.NAMESPACE_URL, f"callsheet:{fixed}")))
    try:
        signature.apply_async((value,), parent_id=name, root_id=canvas.get("root_id") or name, **options)
    except (CallsheetError, ValueError, TypeError) as fault:
        if isinstance(fault, ConnectionError):
            raise
        log.warning("what follows job %s was refused: %s", name, fault)
        context = Context(signature)
        context.update(context.options, id=signature.id, **options)
        app.backend.mark_as_failure(signature.id, fault, request=context)


def _context(name: str, canvas: Mapping[str, Any]) -> Context:
    """The request that Celery's backend expects, under one of the job's names."""
    return Context(
        id=name,
        task="callsheet.generate_video",
        group=canvas.get("group_id"),
        group_index=canvas.get("group_index"),
        chord=canvas.get("chord"),
        chain=canvas.get("chain"),
        callbacks=canvas.get("link"),
        errbacks=canvas.get("link_error"),
        root_id=canvas.get("root_id"),
        parent_id=canvas.get("parent_id"),
        delivery_info={},
        ignore_result=False,
        args=[],
        kwargs={},
    )
