"""``callsheet doctor``: is this deployment sound, and if not, what is to be done?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from callsheet.cli.options import common
from callsheet.cli.output import emit
from callsheet.cli.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callsheet.cli.checks import Finding


@click.command()
@common
def doctor() -> int:
    """Check this deployment and say what to do about each finding.

    Exit code 0 when nothing failed, 5 when only broker or store do not answer, else 1.
    """
    from callsheet.cli.checks import exit_code
    from callsheet.cli.probes import examine
    from callsheet.client import Client

    door = Client()
    _ = door.settings, door.catalog  # a wrong setting is told by itself, with exit code 2
    findings = examine(door)
    code = exit_code(findings)
    emit({"ok": code == 0, "checks": [_document(finding) for finding in findings]}, _table(findings))
    return code


def _document(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "level": str(finding.level),
        "detail": finding.detail,
        "next_step": finding.next_step or None,
    }


def _table(findings: Sequence[Finding]) -> Table:
    columns = (
        Column("level"),
        Column("check"),
        Column("found", wraps=True),
    )
    return Table(columns, [row for finding in findings for row in _rows(finding)])


def _rows(finding: Finding) -> list[tuple[str, ...]]:
    """The finding, and below it what to do."""
    step = [("", "", f"-> {finding.next_step}")] if finding.next_step else []
    return [(str(finding.level), finding.check, finding.detail), *step]
