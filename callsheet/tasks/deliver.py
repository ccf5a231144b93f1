"""Delivery: the outcome of an ended job reaches the result backend, its chord and its links.

By the worker right after the job, or later by the deliverer on a beat: every part is marked in the store
once it is done, links are fired under fixed ids and a chord counts a member by its id, so a crash anywhere
is finished by somebody and nothing is counted twice. A link may be fired twice, under one id, when the
deliverer dies between firing and marking.

A host that cannot be reached holds up its own part only: the job stays undelivered and is tried again.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from celery import Celery, states
from celery.app.task import Context

from callsheet.app import app
from callsheet.errors import CallsheetError, Unreachable
from callsheet.firing import AWAY, Unfired
from callsheet.mixed import unmarked
from callsheet.records.jobs import Job
from callsheet.records.states import CELERY, State
from callsheet.store.protocol import Store
from callsheet.tasks.canvas import acting_for, counting_app, follower_app
from callsheet.tasks.hosts import check_reachable
from callsheet.tasks.outcome import value_of

log = logging.getLogger(__name__)

#: How long a deliverer that died blocks the next one, seconds. Longer than Celery's claim on firing a chord
#: (about 10 s with our time limits): within it a chord whose firing was cut off would count as fired.
BUSY_S = 20.0
AGAIN_S = 2.0  # when a part is tried again whose server did not answer, and of which nobody holds a claim
CHORD = "chord"


def deliver(store: Store, job_id: str, *, busy_s: float = BUSY_S) -> bool:
    """Deliver one ended job under its id and all its aliases.

    False when it is not due, somebody else is at it, or a host cannot be reached now.
    """
    token = uuid.uuid4().hex
    if not store.lock_delivery(job_id, token=token, busy_s=busy_s):
        return False
    done: set[str] = set()
    while not store.mark_delivered(job_id, names=done, token=token):
        job = store.get(job_id)
        if not job.ended:
            return False
        names = {job.id: job.canvas, **store.aliases(job_id)}
        if set(names) <= done:
            return False  # the lock went to somebody else
        again_s = max(_deliver_name(store, job, name, canvas) for name, canvas in names.items())
        if again_s:
            store.lock_delivery(job_id, token=token, busy_s=again_s)
            return False
        done = set(names)
    return True


def _deliver_name(store: Store, job: Job, name: str, canvas: Mapping[str, Any]) -> float:
    """The parts of one name, each once: what follows first, so that a waiter finds it under way.

    Answers in how many seconds those are tried again that are left, since a server of the host did not
    answer; 0 when none is.
    """
    parts: dict[str, Callable[[], None]] = {
        "links": lambda: _fire(job, name, canvas),
        "result": lambda: _store_result(job, name, canvas),
        CHORD: lambda: _count_in_chord(job, name, canvas),
    }
    finished = store.delivered_parts(job.id)
    due = [part for part in parts if f"{name}:{part}" not in finished]
    if not due:
        return 0.0
    with acting_for(canvas):
        return max(_do_part(store, job, name, part, parts[part]) for part in due)


def _do_part(store: Store, job: Job, name: str, part: str, act: Callable[[], None]) -> float:
    """Do it and mark it. Answers 0, or in how many seconds it is tried again."""
    said, again_s = f"{name}:{part}", BUSY_S if part == CHORD else AGAIN_S
    try:
        act()
    except Unreachable:
        raise
    except Unfired as fault:
        log.warning("%s of job %s is tried again: %s", said, job.id, fault)
        return AGAIN_S
    except AWAY as fault:
        log.warning("%s of job %s is tried again: broker or backend do not answer (%s)", said, job.id, fault)
        return again_s
    except Exception:
        log.exception("%s of job %s failed and is tried again", said, job.id)
        return again_s
    store.mark_part(job.id, said)
    return 0.0


def _store_result(job: Job, name: str, canvas: Mapping[str, Any]) -> None:
    """Ours, and for a group that a host leads in the host's backend too: there its results are looked for."""
    if not canvas.get("ignore_result"):
        for one in _once(app, counting_app(canvas) if canvas.get("counter") else app):
            one.backend.store_result(name, value_of(job), CELERY[job.state], request=_context(name, canvas))


def _count_in_chord(job: Job, name: str, canvas: Mapping[str, Any]) -> None:
    body = canvas.get("chord")
    if not body:
        return
    check_reachable(counting_app(canvas))
    counter, home = counting_app(canvas).backend, follower_app(canvas).backend
    with acting_for(canvas, firing=True):
        counter.on_chord_part_return(_context(name, canvas), CELERY[job.state], value_of(job))
    body_id = body["options"].get("task_id")
    if canvas.get("host") and not canvas.get("counter") and body_id:
        meta = counter.get_task_meta(body_id)
        if (
            meta["status"] in states.PROPAGATE_STATES
        ):  # known to our backend; the waiter looks into the host's
            home.mark_as_failure(body_id, meta["result"], request=Context(chain=body["options"].get("chain")))


def _fire(job: Job, name: str, canvas: Mapping[str, Any]) -> None:
    """Links and the rest of the chain after a success.

    Error links, and the chain's failure, after any other end.
    """
    value = value_of(job)
    if isinstance(value, CallsheetError):
        if canvas.get("link_error") or canvas.get("chain"):
            _fail(value, CELERY[job.state], _context(name, {**canvas, "chord": None}), canvas)
        return
    for link in canvas.get("link") or ():
        _follow(link, value, name, canvas)
    chain = list(canvas.get("chain") or ())
    if chain:
        _follow(chain.pop(), value, name, canvas, chain=chain)


def _follow(link: dict[str, Any], value: Any, name: str, canvas: Mapping[str, Any], **options: Any) -> None:
    """Publish one follower under its fixed id. A follower that is refused fails alone."""
    signature = follower_app(canvas).signature(link)
    try:
        signature.apply_async((value,), parent_id=name, root_id=canvas.get("root_id") or name, **options)
    except (CallsheetError, ValueError, TypeError) as fault:
        if isinstance(fault, ConnectionError):
            raise
        log.warning("what follows job %s was refused: %s", name, fault)
        context = Context(signature)
        context.update(
            context.options, id=signature.id, errbacks=signature.options.get("link_error"), **options
        )
        _fail(fault, CELERY[State.FAILED], context, canvas)


def _fail(fault: Exception, state: str, context: Context, canvas: Mapping[str, Any]) -> None:
    """Let a failure reach what waits for it, in every backend where somebody may look: ours and the host's.

    Error links are fired once, by the app whose tasks they are; a chord is told once, where it is counted.
    """
    home, counter = follower_app(canvas), counting_app(canvas)
    for one in _once(app, home, counter):
        told = Context(vars(context))
        told.update(
            chain=[_with_chord(step, one is counter) for step in context.chain or ()],
            chord=context.chord if one is counter else None,
            errbacks=context.errbacks if one is home else None,
        )
        one.backend.mark_as_failure(context.id, fault, request=told, state=state)


def _once(*apps: Celery) -> Iterator[Celery]:
    """Each app once, in order."""
    return iter({id(one): one for one in apps}.values())


def _with_chord(step: Mapping[str, Any], counted: bool) -> dict[str, Any]:
    """A step of a chain, with its chord where that is counted."""
    options = {k: v for k, v in step["options"].items() if k != "chord"}
    if counted and step["options"].get("chord"):
        options["chord"] = unmarked(step["options"]["chord"])
    return {**step, "options": options}


def _context(name: str, canvas: Mapping[str, Any]) -> Context:
    """The request that Celery's backend expects, under one of the job's names."""
    return Context(
        id=name,
        task="callsheet.generate_video",
        group=canvas.get("group_id"),
        group_index=canvas.get("group_index"),
        chord=unmarked(canvas["chord"]) if canvas.get("chord") else None,
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
