"""What rounds of kills did, as a table."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

ROUNDS = int(os.environ.get("ROUNDS") or 5)  # of kills
SEED = os.environ.get("CHAOS_SEED") or str(random.randrange(10**6))  # of the moments

HEAD = (
    *("killed", "rounds", "jobs", "attempts lost", "claimed again after, s: p50", "max"),
    *("resumed", "steps redone: all", "most", "films identical", "outcomes doubled", "jobs lost"),
)


@dataclass(frozen=True, slots=True)
class Round:
    """One kill while jobs ran or waited, and what became of them."""

    kind: str  # what was killed
    moment: str  # when and what exactly, to play it again
    jobs: int
    recovery_s: tuple[float, ...]  # from the kill until each job that it hit was claimed again
    resumed: int  # of these, attempts that began at a kept step
    redone: tuple[int, ...]  # steps that were computed twice, of each job that was hit
    identical: int  # films that are the undisturbed ones
    doubled: int  # jobs and chords with more than one outcome
    lost: int  # jobs and chords without an outcome

    @property
    def clean(self) -> bool:
        """No harm was done that anybody could see from outside."""
        return self.identical == self.jobs and not self.doubled and not self.lost


played: list[Round] = []  # of this test run


def table(rounds: Sequence[Round]) -> list[str]:
    """Lines of a Markdown table: a row for each kind, and one for all."""
    kinds = list(dict.fromkeys(one.kind for one in rounds))
    rows = [_row(kind, [one for one in rounds if one.kind == kind]) for kind in kinds]
    rows.append(_row("all", rounds))
    return [_line(HEAD), "|---" * len(HEAD) + "|", *(_line(row) for row in rows)]


def _row(kind: str, rounds: Sequence[Round]) -> tuple[str, ...]:
    recoveries = [seconds for one in rounds for seconds in one.recovery_s]
    redone = [steps for one in rounds for steps in one.redone]
    jobs = sum(one.jobs for one in rounds)
    return (
        *(kind, str(len(rounds)), str(jobs), str(len(recoveries))),
        f"{median(recoveries):.2f}" if recoveries else "-",
        f"{max(recoveries):.2f}" if recoveries else "-",
        *(str(sum(one.resumed for one in rounds)), str(sum(redone)), str(max(redone, default=0))),
        f"{sum(one.identical for one in rounds)} of {jobs}",
        *(str(sum(one.doubled for one in rounds)), str(sum(one.lost for one in rounds))),
    )


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
