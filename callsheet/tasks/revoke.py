"""Celery's ``revoke`` in the words of jobs; what workers do on it is in ``panel.py``.

Two meanings. With ``terminate=True, signal="SIGUSR1"``, which the controllers send to one worker, the attempt
of that ticket yields its GPU: a flag for its next step, if it runs there, and nothing else anywhere. Any
other revoke, from Flower, from ``celery control revoke`` or from ``AsyncResult.revoke()``, means that
somebody does not want the film: the job is cancelled in its record, so that nothing revives it.

Celery's own command would store REVOKED under the ticket's id, acknowledge the message before a checkpoint is
saved, and keep the id in every worker's set of revoked tasks.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from celery.app.control import Control
from kombu.exceptions import OperationalError

from callsheet import wiring
from callsheet.app import app
from callsheet.errors import JobNotFound
from callsheet.records.states import State
from callsheet.settings import urls
from callsheet.store.protocol import Store

log = logging.getLogger(__name__)

YIELD_SIGNAL = "SIGUSR1"
_TICKET = re.compile(r"(?P<job>.+)\.\d+")


class JobControl(Control):
    """``app.control`` of our app: a revoke that cancels is in the record before it is on the wire."""

    def revoke(
        self,
        task_id: Any,
        destination: Any = None,
        terminate: bool = False,
        signal: Any = "SIGTERM",
        **kwargs: Any,
    ) -> Any:
        """As Celery's; see the module. Raises Unreachable when the store does not answer."""
        if not means_yield(terminate, signal):
            cancel_all(wiring.store(), ids_of(task_id))
        return super().revoke(task_id, destination, terminate, signal, **kwargs)

    def terminate(self, task_id: Any, destination: Any = None, signal: Any = "SIGTERM", **kwargs: Any) -> Any:
        """As Celery's: a revoke with ``terminate``."""
        return self.revoke(task_id, destination=destination, terminate=True, signal=signal, **kwargs)


def means_yield(terminate: bool, signal: Any) -> bool:
    """Whether a revoke asks for the GPU and not for the job's end."""
    return bool(terminate) and str(signal).upper().removeprefix("SIG") == "USR1"


def signal_yield(ticket_id: str, worker: str) -> None:
    """The revoke signal. The record carries the same order, so a lost one costs a renewal's time."""
    try:
        app.control.revoke(ticket_id, destination=[worker], terminate=True, signal=YIELD_SIGNAL)
    except (OperationalError, OSError) as fault:
        said = urls.untrusted(fault) or fault
        log.warning("no signal to %s for %s (%s): its lease's renewal tells it", worker, ticket_id, said)


def cancel_all(store: Store, ids: Iterable[str]) -> dict[str, State]:
    """Cancel the jobs behind job ids, aliases and ticket ids.

    Answers the jobs that were known, with the state that they have now: one that had ended keeps its own.
    """
    jobs = [job_id for name in ids if (job_id := job_of(store, name))]
    return {job_id: store.cancel(job_id, reason="revoked", op=uuid.uuid4().hex) for job_id in jobs}


def told(jobs: Mapping[str, State]) -> str:
    """What became of the jobs that somebody wanted cancelled, in words."""
    cancelled = ", ".join(job_id for job_id, state in jobs.items() if state is State.CANCELLED)
    said = [f"cancelled: {cancelled}"] if cancelled else []
    for job_id, state in jobs.items():
        if state is not State.CANCELLED:
            said.append(f"{job_id} had ended before: it stays {state}")
    return "; ".join(said) or "none of them is a job"


def job_of(store: Store, name: str) -> str:
    """The job behind a job id, an alias or a ticket id; "" when none is known."""
    ticket = _TICKET.fullmatch(name)
    for candidate in (name, ticket["job"] if ticket else ""):
        try:
            if candidate:
                return store.resolve(candidate)
        except JobNotFound:
            continue
    return ""


def ids_of(task_id: Any) -> list[str]:
    """The ids in a command's argument: one, or several."""
    found = task_id if isinstance(task_id, list | tuple | set) else [task_id]
    return [str(name) for name in found if name]
