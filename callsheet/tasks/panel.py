"""The commands ``revoke`` and ``terminate`` of our workers, in place of Celery's; ``revoke.py`` says what
they mean.

Only our own workers load this: Celery's registry of commands is one for the whole process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from celery.worker.control import control_command

from callsheet import wiring
from callsheet.errors import CallsheetError
from callsheet.tasks.revoke import cancel_all, ids_of, means_yield, told

log = logging.getLogger(__name__)

#: (ticket id, order) -> whether that ticket's attempt runs here and was told.
Flag = Callable[[str, str], bool]
_flag: Flag = lambda _ticket, _order: False  # noqa: E731


def set_flag(flag: Flag) -> None:
    """How this worker tells its child; set at boot by workers that own a GPU."""
    global _flag
    _flag = flag


@control_command(name="revoke", variadic="task_id", signature="[id1 [id2 [... [idN]]]]")
def revoke(
    _state: Any, task_id: Any, terminate: bool = False, signal: Any = None, **_: Any
) -> dict[str, Any]:
    """Cancel jobs by job id or ticket id; with terminate and SIGUSR1: let one attempt yield its GPU."""
    ids = ids_of(task_id)
    if means_yield(terminate, signal):
        here = [name for name in ids if _flag(name, "yield")]
        return {"ok": f"yield: {', '.join(here) or 'none of them runs here'}"}
    try:
        known = cancel_all(wiring.store(), ids)
    except CallsheetError as fault:
        log.warning("revoke of %s: %s", ", ".join(ids), fault)
        return {"error": str(fault)}
    for name in ids:
        _flag(name, "cancel")
    return {"ok": told(known)}


@control_command(
    name="terminate", variadic="task_id", args=[("signal", str)], signature="<signal> [id1 [id2 [... [idN]]]]"
)
def terminate(state: Any, signal: Any, task_id: Any, **_: Any) -> dict[str, Any]:
    """As revoke with terminate."""
    answer: dict[str, Any] = revoke(state, task_id, terminate=True, signal=signal)
    return answer
