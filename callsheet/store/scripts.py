"""The atomic steps in Redis: each ``lua/<name>.lua`` behind a typed function.

A script is a generated header (keys, transition table, limits and texts, so that none is written twice), the
prelude, and its own file. What the arguments and answers mean stands at the top of each file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from typing import Any, cast

from callsheet.records.jobs import FORMAT, Outcome, Ticket
from callsheet.records.states import TERMINAL, TRANSITIONS, State
from callsheet.store import rules
from callsheet.store.codec import outcome_fields, stamp
from callsheet.store.connection import Connection
from callsheet.store.keys import PATTERNS

Clock = Callable[[], float]

_NUMBERS: dict[str, int | str] = {
    "FORMAT": FORMAT,
    "EVENTS_MAX": rules.EVENTS_MAX,
    "TRIM_MAX": rules.TRIM_MAX,
    "RELEASE_MAX": rules.RELEASE_MAX,
    "OP_TTL_MS": int(rules.OP_TTL_S * 1000),
    "TICK_TTL_MS": int(rules.TICK_TTL_S * 1000),
    "REPORT_TTL_MS": int(rules.REPORT_TTL_S * 1000),
}
_TEXTS: dict[str, int | str] = {
    "EXPIRED_TEXT": rules.EXPIRED_TEXT,
    "CANCELLED_TEXT": rules.CANCELLED_TEXT,
    "LOST_TEXT": rules.LOST_TEXT,
}


def header() -> str:
    """Key patterns, transitions, limits and texts as Lua: plain values, since every run makes them anew."""
    tables: dict[str, Mapping[str, str | bool]] = {
        "PATTERNS": {name: pattern.replace("{}", "%s") for name, pattern in PATTERNS.items()},
        "TRANSITIONS": {state: " ".join(sorted(after)) for state, after in TRANSITIONS.items()},
        "TERMINAL": dict.fromkeys(sorted(TERMINAL), True),
    }
    lines = [f"local {name} = {_lua_table(table)}" for name, table in tables.items()]
    lines += [f"local {name} = {json.dumps(value)}" for name, value in (_NUMBERS | _TEXTS).items()]
    return "\n".join(lines) + "\n"


def _lua_table(table: Mapping[str, str | bool]) -> str:
    return "{ " + ", ".join(f"{name} = {json.dumps(value)}" for name, value in table.items()) + " }"


def sources() -> dict[str, str]:
    """Script name -> its whole text."""
    folder = resources.files("callsheet.store") / "lua"
    files = {f.name.removesuffix(".lua"): f.read_text() for f in folder.iterdir() if f.name.endswith(".lua")}
    start = header() + files.pop("_prelude")
    return {name: start + text for name, text in sorted(files.items())}


def _flat(fields: Mapping[str, str]) -> list[str]:
    return [part for pair in fields.items() for part in pair]


class Scripts:
    """The scripts on one server; see the verbs of the protocol for what each does."""

    def __init__(
        self, connection: Connection, *, prefix: str, retention_s: float, clock: Clock | None
    ) -> None:
        self._connection = connection
        self._prefix = prefix
        self._retention = repr(retention_s)
        self._clock = clock
        self._scripts = {name: connection.client.register_script(text) for name, text in sources().items()}

    def _run(self, name: str, *args: object, op: str = "") -> list[Any]:
        now = stamp(self._clock()) if self._clock else ""
        argv = [self._prefix, now, self._retention, op, *map(str, args)]
        script = self._scripts[name]
        return cast(list[Any], self._connection.call(lambda: script(args=argv)))

    def _yes(self, name: str, *args: object, op: str = "") -> bool:
        return bool(self._run(name, *args, op=op) == ["1"])

    def submit(
        self, job_id: str, *, alias: bool, release: bool, fields: Mapping[str, str], op: str
    ) -> tuple[str, str, list[str]]:
        """("created" | "known" | "conflict", id, tickets as :meth:`release`)."""
        flags = ("1" if flag else "" for flag in (alias, release))
        kind, first, *tickets = self._run("submit", job_id, *flags, *_flat(fields), op=op)
        return kind, first, tickets

    def release(self, queue: str, *, op: str) -> list[str]:
        """``[id, ticket, format, ...]``."""
        return self._run("release", queue, op=op)

    def claim(self, ticket: Ticket, *, worker: str, token: str, lease_s: float) -> tuple[str, list[str]]:
        """("refused", [reason]) or ("lease", [field, value, ...])."""
        kind, *rest = self._run("claim", ticket.job_id, ticket.number, ticket.format, worker, token, lease_s)
        return kind, rest

    def renew(self, job_id: str, attempt: int, token: str, lease_s: float, *progress: int | str) -> str:
        """The order. ``progress`` is step, steps, phase."""
        return cast(str, self._run("renew", job_id, attempt, token, lease_s, *progress)[0])

    def finish(self, job_id: str, attempt: int, token: str, outcome: Outcome, *, op: str) -> bool:
        """False: fenced."""
        spent = map(stamp, (outcome.gpu_s_useful, outcome.gpu_s_wasted, outcome.gpu_s_loading))
        rest = [outcome.step, *spent, *_flat(outcome_fields(outcome))]
        return self._yes("finish", job_id, attempt, token, outcome.state, *rest, op=op)

    def hand_back(
        self, job_id: str, attempt: int, token: str, *, reason: str, wasted: float, op: str
    ) -> bool:
        """False: fenced."""
        return self._yes("hand_back", job_id, attempt, token, reason, stamp(wasted), op=op)

    def cancel(self, name: str, *, reason: str, op: str) -> State | None:
        """The state now; None for an unknown name."""
        found = self._run("cancel", name, reason, op=op)
        return State(found[0]) if found else None

    def order(self, job_id: str, attempt: int, order: str, *, reason: str, op: str) -> bool:
        """False: that attempt does not run."""
        return self._yes("order", job_id, attempt, order, reason, op=op)

    def reap(self, *, max_crashes: int, limit: int, op: str) -> list[str]:
        """Ids."""
        return self._run("reap", max_crashes, limit, op=op)

    def heal(self, queue: str, *, older_s: float, limit: int, op: str) -> list[str]:
        """Ids."""
        return self._run("heal", queue, older_s, limit, op=op)

    def wake(self, *, limit: int, op: str) -> list[str]:
        """Queues that received jobs."""
        return self._run("wake", limit, op=op)

    def reroute(self, job_id: str, *, gpu_class: str, queue: str, op: str) -> bool:
        """False: neither pending nor held."""
        return self._yes("reroute", job_id, gpu_class, queue, op=op)

    def set_quotas(self, quotas: Mapping[str, int], *, op: str) -> None:
        """Replaces all."""
        self._run("set_quotas", *_flat({queue: str(quota) for queue, quota in quotas.items()}), op=op)

    def begin_tick(self, controller: str, number: int, *, token: str, busy_s: float) -> bool:
        """True: begun."""
        return self._yes("begin_tick", controller, number, token, busy_s)

    def end_tick(self, controller: str, number: int, *, token: str, report: str) -> bool:
        """False: another tick has begun meanwhile."""
        return self._yes("end_tick", controller, number, token, report)

    def lock_delivery(self, job_id: str, *, token: str, busy_s: float) -> bool:
        """True: locked."""
        return self._yes("lock_delivery", job_id, token, busy_s)

    def mark_part(self, job_id: str, part: str) -> None:
        """Once is as good as twice."""
        self._run("mark_part", job_id, part)

    def mark_delivered(self, job_id: str, *, names: Iterable[str], token: str) -> bool:
        """False: a name was not served."""
        return self._yes("mark_delivered", job_id, token, *names)

    def counts(self) -> list[str]:
        """``[state, count, ...]``."""
        return self._run("counts")

    def depths(self, place: str) -> list[str]:
        """``[queue, count, ...]`` of "backlog" or "published"."""
        return self._run("depths", place)

    def beat_gpu(self, name: str, *, ttl_s: float, fields: Mapping[str, str]) -> None:
        """Replaces what was known of it."""
        self._run("beat_gpu", name, ttl_s, *_flat(fields))

    def gpus(self) -> list[tuple[str, list[str]]]:
        """(name, [field, value, ...]) of each alive."""
        return [(name, fields) for name, fields in self._run("gpus")]
