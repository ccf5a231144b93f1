"""``callsheet config``: every setting."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from callsheet.cli.options import common
from callsheet.cli.output import emit
from callsheet.cli.table import Column, Table
from callsheet.cli.words import NOTHING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callsheet.settings import Row


@click.command()
@common
def config() -> None:
    """Show every setting with its value, source and meaning. Secrets are masked."""
    from callsheet.settings import describe, load

    rows = describe(load())
    emit({"settings": {row.name: _document(row) for row in rows}}, _table(rows))


def _document(row: Row) -> dict[str, Any]:
    return {key: value for key, value in asdict(row).items() if key != "name"}


def _table(rows: Sequence[Row]) -> Table:
    columns = (
        Column("setting"),
        Column("value", wraps=True),
        Column("unit", spare=2),
        Column("source", wraps=True),
        Column("meaning", wraps=True, spare=1),
    )
    lines = [(r.name, r.value or NOTHING, r.unit or NOTHING, r.source, r.meaning) for r in rows]
    return Table(columns, lines)
