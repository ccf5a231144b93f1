"""What ``doctor`` makes of its findings: ok, warn or fail, with the next step. Pure (``probes.py`` looks)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from callsheet.cli.extras import INSTALL
from callsheet.cli.failures import FAILED, UNREACHABLE
from callsheet.cli.words import count, span
from callsheet.records.gpus import Gpu

if TYPE_CHECKING:
    from callsheet.store.server import SentinelFacts, ServerFacts

OLDEST_SERVER = 7  # major version of Redis or Valkey


RARE_S = 30.0  # rounds that run so seldom have not run yet on a stack that has just begun


class Level(StrEnum):
    """How a finding is to be taken."""

    OK = "ok"
    WARN = "warn"  # callsheet works, something is missing or unwise
    FAIL = "fail"  # jobs cannot be served, or can be lost


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of ``doctor``."""

    check: str
    level: Level
    detail: str
    next_step: str = ""
    unreachable: bool = False  # the broker or the store did not answer


def exit_code(findings: Sequence[Finding]) -> int:
    """0 when nothing failed; 5 when all that failed is that broker and store do not answer; else 1."""
    failed = [finding for finding in findings if finding.level is Level.FAIL]
    if not failed:
        return 0
    return UNREACHABLE if all(finding.unreachable for finding in failed) else FAILED


def judge_server(facts: ServerFacts) -> list[Finding]:
    """The store's server: its version, that it keeps its data, that it never throws records away."""
    forgets = "no: a restart of the server loses every job"
    return [
        _version("store", facts),
        _config("store", "appendonly", facts.appendonly, ("yes",), forgets),
        _config(
            "store",
            "appendfsync",
            facts.appendfsync,
            ("everysec", "always"),
            f"{facts.appendfsync}: a crash of the machine loses the jobs of up to half a minute",
        ),
        _policy("store", facts),
        *_copies("store", facts),
    ]


def judge_broker(facts: ServerFacts) -> list[Finding]:
    """The broker's server, when it is not the store's: losing it loses nothing."""
    forgets = "no: a restart loses the tickets; no job is lost, every record gets a new ticket"
    return [
        _version("broker: server", facts),
        _config("broker", "appendonly", facts.appendonly, ("yes",), forgets, bad=Level.WARN),
        _policy("broker", facts),
        *_copies("broker", facts),
    ]


def _version(check: str, facts: ServerFacts) -> Finding:
    if not facts.version:
        return _hidden(check, "the version")
    new_enough = _major(facts.version) >= OLDEST_SERVER
    step = f"use Redis {OLDEST_SERVER}.0 or later, or Valkey"
    return _when(new_enough, check, f"version {facts.version}", step)


def _policy(part: str, facts: ServerFacts) -> Finding:
    policy = facts.maxmemory_policy
    what = "records of jobs" if part == "store" else "tickets and orders"
    text = f"{policy}: a full server throws {what} away"
    return _config(part, "maxmemory-policy", policy, ("noeviction",), text)


def _config(
    part: str, name: str, value: str, wanted: tuple[str, ...], wrong: str, *, bad: Level = Level.FAIL
) -> Finding:
    """One line of the server's configuration."""
    check = f"{part}: {name}"
    if not value:
        return _hidden(check, name)
    step = f"redis-cli CONFIG SET {name} {wanted[0]}, and the line `{name} {wanted[0]}` in redis.conf"
    return _when(value in wanted, check, value if value in wanted else wrong, step, bad=bad)


def _hidden(check: str, what: str) -> Finding:
    step = "look it up where the server is managed, or allow our user INFO and CONFIG|GET; see docs/redis.md"
    return Finding(check, Level.WARN, f"{what} cannot be read: the server hides it", step)


def _copies(part: str, facts: ServerFacts) -> list[Finding]:
    """Role and replicas, and what the Sentinels say."""
    role = facts.role or "role unknown"
    detail = f"{role}, {count(facts.replicas, 'replica')} connected"
    step = "name the primary in its URL, or the Sentinels: a replica takes no writes"
    found = [_when(facts.role != "replica", f"{part}: role", detail, step)]
    if facts.sentinels:
        found.append(_judge_sentinels(f"{part}: sentinels", facts.sentinels))
    return found


def _judge_sentinels(check: str, seen: SentinelFacts) -> Finding:
    where = f"quorum {seen.quorum}, primary {seen.primary}" if seen.primary else "none knows the service"
    detail = f"{seen.answering} of {seen.known} answer, {where}"
    step = "start those that are missing: without a majority nobody fails over"
    return _when(seen.answering == seen.known, check, detail, step, bad=Level.WARN)


def _major(version: str) -> int:
    match = re.match(r"\d+", version)
    return int(match[0]) if match else 0


def _when(fine: bool, check: str, detail: str, next_step: str, *, bad: Level = Level.FAIL) -> Finding:
    return Finding(check, Level.OK, detail) if fine else Finding(check, bad, detail, next_step)


def judge_devices(names: Sequence[str], trouble: str) -> Finding:
    """The GPUs of this machine. A machine without one can submit and control."""
    if trouble:
        return Finding(
            "GPUs here", Level.WARN, trouble, f"nothing to do, unless it shall run workers: {_DRIVER}"
        )
    return Finding("GPUs here", Level.OK, ", ".join(names))


_DRIVER = 'install the GPU driver, or declare GPUs to try things on the CPU: CALLSHEET_GPUS="h100,a100"'


def judge_packages(versions: Mapping[str, str]) -> Finding:
    """What a worker needs to render."""
    missing = [name for name, found in versions.items() if not found]
    if missing:
        return Finding(
            "worker packages",
            Level.WARN,
            f"not installed: {', '.join(missing)}; this machine can submit and control, not render",
            f"to render here: {INSTALL}",
        )
    return Finding("worker packages", Level.OK, ", ".join(f"{n} {v}" for n, v in versions.items()))


def judge_models(folders: Mapping[str, bool], from_hub: int) -> Finding:
    """Models in folders are there; those from the hub are downloaded by the worker that needs them first."""
    missing = [name for name, found in folders.items() if not found]
    hub = f"{count(from_hub, 'model')} from the hub, downloaded at first use"
    if not missing:
        return Finding("models", Level.OK, f"{count(len(folders), 'model')} in folders, all there; {hub}")
    tiny = [name for name in missing if name.startswith("tiny-")]
    others = [name for name in missing if name not in tiny]
    steps = [f"callsheet models build-tiny {' '.join(tiny)}"] if tiny else []
    steps += (
        [f"put the files of {', '.join(others)} into the folder that `callsheet models show` names"]
        if others
        else []
    )
    return Finding("models", Level.WARN, f"not there: {', '.join(missing)}; {hub}", "; ".join(steps))


def judge_workers(gpus: Sequence[Gpu], waiting: int) -> Finding:
    """Live workers, by their heartbeats in the store."""
    if not gpus:
        detail = "none alive" + (f", {count(waiting, 'job waits', 'jobs wait')}" if waiting else "")
        step = "start some: `callsheet worker` on a GPU machine, or `callsheet up` for everything"
        return Finding("workers", Level.WARN, detail, step)
    classes = Counter(gpu.gpu_class for gpu in gpus)
    alive = ", ".join(f"{number} x {name}" for name, number in sorted(classes.items()))
    busy = sum(bool(gpu.job_id) for gpu in gpus)
    return Finding("workers", Level.OK, f"{alive}; {busy} busy, {count(waiting, 'job waits', 'jobs wait')}")


def judge_ticks(
    reports: Mapping[str, Mapping[str, Any]], *, now: float, periods: Mapping[str, float]
) -> list[Finding]:
    """The rounds of controllers, by the report of each one's last tick; ``periods``: seconds between two."""
    return [_judge_tick(name, report, now, periods[name]) for name, report in reports.items()]


def _judge_tick(name: str, report: Mapping[str, Any], now: float, period_s: float) -> Finding:
    check = f"controllers: {name}"
    step = "start them: `callsheet up`, or a beat and a controller worker of the Procfile"
    if not report and period_s >= RARE_S:
        return Finding(check, Level.OK, f"no tick yet: it comes every {span(period_s)}")
    if not report:
        return Finding(check, Level.WARN, "no tick for minutes", step)
    age_s = max(now - report.get("at", 0.0), 0.0)
    faults = report.get("faults") or []
    if faults:
        detail = f"the last tick had faults: {'; '.join(faults)}"
        return Finding(check, Level.FAIL, detail, "read a controller's log")
    late = age_s > (3 if period_s >= RARE_S else 10) * period_s + 1
    return _when(not late, check, f"last tick {span(age_s)} ago", step, bad=Level.WARN)
