"""The atomic steps in Redis: each ``lua/<name>.lua`` behind a typed function.

A script is a generated header (keys, transition table, limits and texts, so that none is written twice), the
prelude, and its own file. What the arguments and answers mean stands at the top of each file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from typing import Any, cast

from callsheet.records.jobs import CHECKPOINT_FORMAT, FORMAT, Checkpoint, Outcome, Spent, Ticket
from callsheet.records.lanes import DIRECT
from callsheet.records.states import TERMINAL, TRANSITIONS, State
from callsheet.store import rules
from callsheet.store.codec import checkpoint_json, outcome_fields, stamp
from callsheet.store.connection import Connection
from callsheet.store.keys import PATTERNS

Clock = Callable[[], float]

_NUMBERS: dict[str, int | str] = {
    "FORMAT": FORMAT,
    "CHECKPOINT_FORMAT": CHECKPOINT_FORMAT,
    "EXTENDED_MAX": rules.EXTENDED_MAX,
    "GUESSED_GPU_S": int(rules.GUESSED_GPU_S),
    "URGENT_TTL_MS": int(rules.URGENT_TTL_S * 1000),
    "EVENTS_MAX": rules.EVENTS_MAX,
    "EVENTS_FIRST": rules.EVENTS_FIRST,
    "TRIM_MAX": rules.TRIM_MAX,
    "TURNS_TTL_S": rules.TURNS_TTL_S,
    "MEMORY_TTL_S": rules.MEMORY_TTL_S,
    "PLANS_TTL_S": rules.PLANS_TTL_S,
    "PLANS_MAX": rules.PLANS_MAX,
    "RELEASE_MAX": rules.RELEASE_MAX,
    "OP_TTL_MS": int(rules.OP_TTL_S * 1000),
    "TICK_TTL_MS": int(rules.TICK_TTL_S * 1000),
    "REPORT_TTL_MS": int(rules.REPORT_TTL_S * 1000),
}
_TEXTS: dict[str, int | str] = {
    "EXPIRED_TEXT": rules.EXPIRED_TEXT,
    "CANCELLED_TEXT": rules.CANCELLED_TEXT,
    "LOST_TEXT": rules.LOST_TEXT,
    "HASTENED_TEXT": rules.HASTENED,
    "PASSED": rules.PASSED,
    "CHORD_PART": rules.CHORD_PART,
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


def _flag(yes: bool) -> str:
    return "1" if yes else ""


def _spent(spent: Spent) -> list[str]:
    return [stamp(seconds) for seconds in (spent.useful, spent.wasted, spent.loading)]


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
        script, argv = self._scripts[name], self._argv(*args, op=op)
        return cast(list[Any], self._connection.call(lambda: script(args=argv)))

    def _argv(self, *args: object, op: str) -> list[str]:
        now = stamp(self._clock()) if self._clock else ""
        return [self._prefix, now, self._retention, op, *map(str, args)]

    def _kept(self, name: str, *args: object, op: str) -> tuple[list[Any], bool | None]:
        """The answer, and whether a replica has it; see :meth:`Connection.run_replicated`."""
        return self._connection.run_replicated(self._scripts[name], self._argv(*args, op=op))

    def _yes(self, name: str, *args: object, op: str = "") -> bool:
        return bool(self._run(name, *args, op=op) == ["1"])

    def submit(
        self, job_id: str, *, alias: bool, release: bool, urgent: bool, fields: Mapping[str, str], op: str
    ) -> tuple[str, str, bool, list[str], bool | None]:
        """("created" | "known" | "conflict", id, urgent, tickets as :meth:`release`, replicated)."""
        flags = (_flag(flag) for flag in (alias, release, urgent))
        answer, replicated = self._kept("submit", job_id, *flags, *_flat(fields), op=op)
        kind, first, look, *tickets = answer
        return kind, first, look == "1", tickets, replicated

    def release(self, queue: str, *, op: str) -> list[str]:
        """``[id, ticket, format, queue, ...]``."""
        return self._run("release", queue, op=op)

    def claim(
        self, ticket: Ticket, *, worker: str, token: str, lease_s: float, build: str
    ) -> tuple[str, list[str]]:
        """("refused", [reason]) or ("lease", [mean seconds between losses, field, value, ...])."""
        wanted = (ticket.job_id, ticket.number, ticket.format, worker, token, lease_s, build)
        kind, *rest = self._run("claim", *wanted, op=token)
        return kind, rest

    def renew(self, job_id: str, attempt: int, token: str, lease_s: float, *told: float | str) -> str:
        """The order. ``told`` is step, steps, phase, loading GPU-seconds, worker, step_s."""
        return cast(str, self._run("renew", job_id, attempt, token, lease_s, *told)[0])

    def keep_checkpoint(
        self, job_id: str, attempt: int, token: str, *, checkpoint: Checkpoint, useful: float, op: str
    ) -> list[str] | None:
        """JSON of the checkpoints that no longer count; None: fenced."""
        facts = (checkpoint.step, checkpoint.format, checkpoint.build, stamp(useful))
        kind, *dropped = self._run(
            "keep_checkpoint", job_id, attempt, token, *facts, checkpoint_json(checkpoint), op=op
        )
        return dropped if kind == "kept" else None

    def start_from(
        self, job_id: str, attempt: int, token: str, *, step: int, exact: bool, reason: str, op: str
    ) -> bool:
        """False: fenced."""
        return self._yes("start_from", job_id, attempt, token, step, _flag(exact), reason, op=op)

    def decline(self, job_id: str, attempt: int, token: str, *, reason: str, op: str) -> bool:
        """False: fenced."""
        return self._yes("decline", job_id, attempt, token, reason, op=op)

    def finish(self, job_id: str, attempt: int, token: str, outcome: Outcome, *, op: str) -> bool:
        """False: fenced."""
        rest = [outcome.step, *_spent(outcome.spent), *_flat(outcome_fields(outcome))]
        return bool(self._kept("finish", job_id, attempt, token, outcome.state, *rest, op=op)[0] == ["1"])

    def hand_back(
        self, job_id: str, attempt: int, token: str, *, reason: str, spent: Spent, preempted: bool, op: str
    ) -> bool:
        """False: fenced."""
        rest = (reason, *_spent(spent), _flag(preempted))
        return self._yes("hand_back", job_id, attempt, token, *rest, op=op)

    def lose(self, job_id: str, attempt: int, token: str, *, reason: str, max_crashes: int, op: str) -> bool:
        """False: fenced."""
        return self._yes("lose", job_id, attempt, token, reason, max_crashes, op=op)

    def requeue(
        self, job_id: str, *, from_start: bool, reason: str, request: str, op: str
    ) -> tuple[bool, State] | None:
        """(whether it was requeued, the state now); None for an unknown id."""
        found = self._run("requeue", job_id, _flag(from_start), reason, request, op=op)
        return (found[0] == "requeued", State(found[1])) if found else None

    def erase(self, job_id: str, request: str, *, op: str) -> bool:
        """False: it has not ended, or is unknown."""
        return self._yes("erase", job_id, request, op=op)

    def cancel(self, name: str, *, reason: str, op: str) -> State | None:
        """The state now; None for an unknown name."""
        found = self._run("cancel", name, reason, op=op)
        return State(found[0]) if found else None

    def order(self, job_id: str, attempt: int, order: str, *, reason: str, op: str) -> bool:
        """False: that attempt does not run."""
        return self._yes("order", job_id, attempt, order, reason, op=op)

    def reap(self, *, max_crashes: int, limit: int, lease_s: float, gap_s: float, op: str) -> list[str]:
        """Ids."""
        return self._run("reap", max_crashes, limit, lease_s, gap_s, op=op)

    def assign(
        self,
        job_id: str,
        queue: str,
        *,
        reason: str,
        ticket: int | None,
        victim: tuple[str, int] | None,
        op: str,
    ) -> tuple[int, int] | None:
        """(ticket, format), or None when the job does not wait, or its victim does not run."""
        seen = "" if ticket is None else ticket
        found = self._run("assign", job_id, queue, reason, seen, *(victim or ("", "")), op=op)
        return (int(found[0]), int(found[1])) if found else None

    def heal(self, queue: str, *, older_s: float, limit: int, reason: str, op: str) -> list[str]:
        """Ids."""
        return self._run("heal", queue, older_s, limit, reason, op=op)

    def wake(self, *, limit: int, op: str) -> list[str]:
        """Queues that received jobs."""
        return self._run("wake", limit, op=op)

    def reroute(self, job_id: str, *, gpu_class: str, queue: str, op: str) -> bool:
        """False: neither pending nor held."""
        return self._yes("reroute", job_id, gpu_class, queue, op=op)

    def set_quotas(self, quotas: Mapping[str, int], *, routes: Mapping[str, Iterable[str]], op: str) -> None:
        """Replaces all."""
        numbers = {queue: str(quota) for queue, quota in quotas.items()}
        ways = {backlog: json.dumps(list(queues)) for backlog, queues in routes.items()}
        self._run("set_quotas", len(numbers), *_flat(numbers), *_flat(ways), op=op)

    def desire(self, wishes: Mapping[str, str], *, op: str) -> None:
        """GPU name -> JSON; "" forgets it."""
        self._run("desire", *_flat(wishes), op=op)

    def remember(self, name: str, memory: str, *, op: str) -> None:
        """Replaces what was remembered."""
        self._run("remember", name, memory, op=op)

    def keep_plan(self, plan: str, *, op: str) -> None:
        """After the others."""
        self._run("keep_plan", plan, op=op)

    def turn(self, tier: str, tenant_tag: str) -> list[str]:
        """``[virtual time of the tier, of the tenant's next turn]``."""
        return self._run("turn", tier, tenant_tag)

    def before(self, tier: str, key: str) -> list[str]:
        """``[queue, jobs, work_s, ...]`` of the tier's backlogs."""
        return self._run("before", tier, key)

    def hasten(self, older_s: Mapping[str, float], *, limit: int, op: str) -> list[str]:
        """Ids."""
        flat = [str(part) for pair in older_s.items() for part in pair]
        return self._run("hasten", limit, *flat, op=op)

    def lanes(self, heads: int) -> list[list[Any]]:
        """``[queue, jobs, work_s, offered_s, rows of the front, rows of those with a ticket]`` of each."""
        return cast(list[list[Any]], self._run("lanes", heads, DIRECT))

    def begin_tick(self, controller: str, number: int, *, token: str, busy_s: float) -> bool:
        """True: begun."""
        return self._yes("begin_tick", controller, number, token, busy_s)

    def end_tick(self, controller: str, number: int, *, token: str, report: str) -> bool:
        """True: somebody came meanwhile, so it is to run once more."""
        return bool(self._run("end_tick", controller, number, token, report) == ["again"])

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

    def order_gpu(self, name: str, fields: Mapping[str, str], *, op: str) -> None:
        """Without fields the order is lifted."""
        self._run("order_gpu", name, *_flat(fields), op=op)

    def gpus(self) -> list[tuple[str, list[str]]]:
        """(name, [field, value, ...]) of each alive."""
        return [(name, fields) for name, fields in self._run("gpus")]
