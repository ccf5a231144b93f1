"""What ``doctor`` makes of its findings: ok, warn or fail, with the next step. Pure (``probes.py`` looks)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from callsheet.cli.extras import INSTALL
from callsheet.cli.failures import FAILED, UNREACHABLE
from callsheet.cli.words import count, span
from callsheet.records.gpus import Gpu

OLDEST_SERVER = 7  # major version of Redis or Valkey


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


def judge_server(facts: Mapping[str, Any]) -> list[Finding]:
    """The store's server: its version, that it keeps its data, that it never throws records away."""
    version, policy = str(facts["version"]), str(facts["maxmemory_policy"])
    new_enough = _major(version) >= OLDEST_SERVER
    keeps = facts["appendonly"] == "yes"
    return [
        _when(new_enough, "store", f"version {version}", f"use Redis {OLDEST_SERVER}.0 or later, or Valkey"),
        _when(
            keeps,
            "store: appendonly",
            "yes" if keeps else "no: a restart of the server loses every job",
            "set `appendonly yes` in its configuration, or: redis-cli config set appendonly yes",
        ),
        _when(
            policy == "noeviction",
            "store: maxmemory-policy",
            policy if policy == "noeviction" else f"{policy}: a full server throws records of jobs away",
            "set `maxmemory-policy noeviction` in its configuration",
        ),
    ]


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


def judge_ticks(reports: Mapping[str, Mapping[str, Any]], *, now: float, tick_s: float) -> list[Finding]:
    """The rounds of controllers, by the report of each one's last tick; an empty one is over a minute old."""
    return [_judge_tick(f"controllers: {name}", report, now, tick_s) for name, report in reports.items()]


def _judge_tick(check: str, report: Mapping[str, Any], now: float, tick_s: float) -> Finding:
    step = "start them: `callsheet up`, or a beat and a controller worker of the Procfile"
    if not report:
        return Finding(check, Level.WARN, "no tick in the last minute", step)
    age_s = max(now - report["number"] * tick_s, 0.0)
    faults = report.get("faults") or []
    if faults:
        detail = f"the last tick had faults: {'; '.join(faults)}"
        return Finding(check, Level.FAIL, detail, "read a controller's log")
    late = age_s > 10 * tick_s + 1
    return _when(not late, check, f"last tick {span(age_s)} ago", step, bad=Level.WARN)
