"""``python -m benchmarks.preemption [--only PART ...] [--rounds N] [--pairs N]``: JSON on stdout.

How long a pro job waits for a GPU that does free work, what that costs the free job, what saves cost, and how
soon a killed worker's job goes on. Exit code: 0 every goal is met, 1 one is missed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.figures import exit_code, missed
from benchmarks.machine import load_average, machine
from benchmarks.preemption_figures import document, of_pairs, of_recoveries, of_rounds, shown

PARTS = ("preemption", "recovery", "overhead")
ROUNDS, KILLS, PAIRS = 20, 8, 3


def main(args: Sequence[str] | None = None) -> int:
    """Measure, print, and answer the exit code."""
    options = _parser().parse_args(args)
    parts = options.only or PARTS
    began, where = time.monotonic(), machine()
    figures: dict[str, Any] = {}
    raw: dict[str, Any] = {}
    for part in PARTS:
        if part in parts:
            with tempfile.TemporaryDirectory(prefix="callsheet-bench-") as folder:
                found, raw[part] = _measure(part, options, Path(folder))
            figures.update(found)
    where["load_average_1m_after"] = load_average()
    took_s = round(time.monotonic() - began, 1)
    made = document(figures, machine=where, took_s=took_s, raw=raw)
    print(json.dumps(made, indent=2))
    for name in missed(made):
        _say(f"missed: {name} is {made[name]}, the goal is {made['goals'][name]['goal']}")
    return exit_code(made)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.preemption", description="Measure preemption and recovery, print JSON."
    )
    parser.add_argument(
        "--only", action="append", choices=PARTS, metavar="PART", help=f"of {PARTS}; repeatable"
    )
    parser.add_argument("--rounds", type=_count, default=ROUNDS, help=f"preemptions (default {ROUNDS})")
    parser.add_argument("--kills", type=_count, default=KILLS, help=f"killed workers (default {KILLS})")
    parser.add_argument(
        "--pairs", type=_count, default=PAIRS, help=f"pairs of minute-long runs (default {PAIRS})"
    )
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no whole number of at least 1")
    return int(text)


def _measure(part: str, options: argparse.Namespace, folder: Path) -> tuple[dict[str, Any], Any]:
    """Figures of one part, and the numbers that they come from."""
    if part == "preemption":
        from benchmarks import preemption_rounds

        rounds = preemption_rounds.measure(folder, options.rounds, _say)
        return of_rounds(rounds), [one.raw() for one in rounds]
    if part == "recovery":
        from benchmarks import preemption_recovery

        seconds = preemption_recovery.measure(folder, options.kills, _say)
        return of_recoveries(seconds), {"seconds": [shown(one) for one in seconds]}
    from benchmarks import preemption_overhead

    pairs = preemption_overhead.measure(folder, options.pairs, _say)
    return of_pairs(pairs), [asdict(pair) for pair in pairs]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
