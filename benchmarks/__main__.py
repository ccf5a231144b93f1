"""``python -m benchmarks [--quick] [--only NAME ...]``: JSON on stdout, talk on stderr.

Exit code: 0 every goal is met, 1 one is missed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import document, exit_code, missed
from benchmarks.machine import load_average, machine

NAMES = ("submit", "encode", "rebalance", "dispatch", "idle")
NEED_WORKERS = frozenset({"dispatch", "idle"})


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    jobs_submitted: int = 150  # per round
    encodings: int = 5
    jobs_waiting: int = 100_000
    jobs_run: int = 60
    idle_s: float = 60.0
    settle_s: float = 5.0


QUICK = Plan(jobs_submitted=40, encodings=1, jobs_waiting=5000, jobs_run=10, idle_s=10.0, settle_s=2.0)


def main(args: Sequence[str] | None = None) -> int:
    """Measure, print, and answer the exit code."""
    options = _parser().parse_args(args)
    names = frozenset(options.only or NAMES)
    began, where = time.monotonic(), machine()
    with tempfile.TemporaryDirectory(prefix="callsheet-bench-") as folder:
        figures = dict(_measure(names, QUICK if options.quick else Plan(), Path(folder)))
    took_s = round(time.monotonic() - began, 1)
    where["load_average_1m_after"] = load_average()
    made = document(figures, machine=where, quick=options.quick, took_s=took_s)
    print(json.dumps(made, indent=2))
    for name in missed(made):
        _say(f"missed: {name} is {made[name]}, the goal is {made['goals'][name]['goal']}")
    return exit_code(made)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure speed, print JSON.")
    parser.add_argument("--quick", action="store_true", help="fewer jobs and 10 s of idling: a first look")
    parser.add_argument(
        "--only",
        action="append",
        choices=NAMES,
        metavar="NAME",
        help=f"one of {', '.join(NAMES)}; repeatable",
    )
    return parser


def _measure(names: frozenset[str], plan: Plan, folder: Path) -> Iterator[tuple[str, float]]:
    """Figures, in the order in which they are measured."""
    if "submit" in names:
        from benchmarks import submit

        _say(f"submit: {submit.ROUNDS} rounds of {plan.jobs_submitted} jobs")
        yield from submit.measure(folder, jobs=plan.jobs_submitted).items()
    if "encode" in names:
        from benchmarks import encode

        _say(f"encode: {plan.encodings} times")
        yield from encode.measure(folder, times=plan.encodings).items()
    if "rebalance" in names:
        from benchmarks import rebalance

        _say(f"rebalance: {plan.jobs_waiting} jobs, which are submitted first")
        yield from rebalance.measure(jobs=plan.jobs_waiting).items()
    if names & NEED_WORKERS:
        yield from _measure_workers(names, plan, folder)


def _measure_workers(names: frozenset[str], plan: Plan, folder: Path) -> Iterator[tuple[str, float]]:
    from benchmarks import dispatch, idle
    from benchmarks.deployment import deployed

    _say("starting a GPU worker and a plain one")
    with deployed(folder) as deployment:
        if "dispatch" in names:
            _say(f"dispatch: {plan.jobs_run} jobs")
            yield from dispatch.measure(deployment, jobs=plan.jobs_run).items()
        if "idle" in names:
            _say(f"idle: {plan.idle_s:g} s")
            figures = idle.measure(deployment, seconds=plan.idle_s, settle_s=plan.settle_s)
            yield from figures.items()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
