"""Which of Celery's ``apply_async`` options a video job honours; every other one is refused by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from callsheet.errors import UnsupportedOption

#: Options of a canvas (chains, groups, chords, links): kept in the record, carried out at delivery.
CANVAS = (
    "link",
    "link_error",
    "chain",
    "chord",
    "group_id",
    "group_index",
    "root_id",
    "parent_id",
    "replaced_task_nesting",
)

#: What Celery passes along on its own; our own connection and ids are used instead.
INTERNAL = frozenset(
    {"producer", "publisher", "connection", "router", "result_cls", "add_to_parent", "route_name",
     "task_type", "reply_to", "retries", "stamped_headers", "stamps", "origin"}
)  # fmt: skip

REFUSED = {
    "priority": "order comes from the tier and the fair share: pass tier='pro' or tier='free'",
    "queue": "it follows from tier and GPU class: pass tier=, or set gpu_classes in the settings",
    "exchange": "callsheet publishes tickets on its own queues: leave it out",
    "routing_key": "callsheet publishes tickets on its own queues: leave it out",
    "time_limit": "a job has no fixed run time: pass deadline= or expires= to bound its start",
    "soft_time_limit": "a job has no fixed run time: pass deadline= or expires= to bound its start",
    "compression": "tickets are tiny and never compressed: leave it out",
    "headers": "a job carries no message headers: leave it out",
    "shadow": "a job is shown under its own name: leave it out",
    "retry": "submitting is retried for a bounded time by itself: leave it out",
    "retry_policy": "submitting is retried for a bounded time by itself: leave it out",
}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one ``apply_async`` call, checked."""

    task_id: str  # "" = draw one
    canvas: dict[str, Any]  # of CANVAS, only what was given
    not_before: float  # seconds since the epoch; 0 = at once
    deadline: float  # seconds since the epoch; 0 = none
    ignore_result: bool


def read_options(options: Mapping[str, Any], *, now: Callable[[], float]) -> Options:
    """Check the options of one call. ``now`` is asked only for relative times (countdown, expires in
    seconds).

    Raises UnsupportedOption that names every option which cannot be honoured.
    """
    given = {k: v for k, v in options.items() if v is not None and k not in INTERNAL}
    canvas = {k: given.pop(k) for k in CANVAS if k in given}
    task_id = given.pop("task_id", "")
    ignore = bool(given.pop("ignore_result", False))
    countdown, eta, expires = (given.pop(k, None) for k in ("countdown", "eta", "expires"))
    serializer = given.pop("serializer", "json")
    faults = [
        f"{name}: {REFUSED.get(name, 'unknown to a video job: leave it out')}" for name in sorted(given)
    ]
    if serializer != "json":
        faults.append(f"serializer={serializer!r}: only 'json' is accepted on the wire")
    if not isinstance(task_id, str) or len(task_id) > 128 or (task_id and not task_id.isprintable()):
        faults.append("task_id: must be a printable string of at most 128 characters")
    not_before = (
        _when("eta", eta, now, faults) if countdown is None else _when("countdown", countdown, now, faults)
    )
    deadline = _when("expires", expires, now, faults)
    if faults:
        raise UnsupportedOption(
            "generate_video cannot honour these Celery options; nothing was submitted:\n"
            + "\n".join(f"  - {fault}" for fault in faults)
        )
    return Options(task_id, canvas, not_before, deadline, ignore)


def _when(name: str, value: Any, now: Callable[[], float], faults: list[str]) -> float:
    """A relative number of seconds, a datetime or an ISO string, as seconds since the epoch."""
    if value is None:
        return 0.0
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            faults.append(f"{name}={value!r}: not an ISO 8601 time")
            return 0.0
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    number = isinstance(value, int | float) and not isinstance(value, bool) and name != "eta"
    if not number or not math.isfinite(value) or value < 0:
        faults.append(
            f"{name}={value!r}: must be a time" + ("" if name == "eta" else " or seconds from now, 0 or more")
        )
        return 0.0
    return now() + float(value)
