"""Tables: plain aligned text for pipes, rich on a terminal. Pure but for what rich asks of the terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TextIO

from callsheet.cli.words import printable

GAP = "  "
NARROW = 20  # a column that wraps needs so much

#: Words whose meaning a terminal shows as a colour, too; colour is never the only sign.
STYLES = {
    "succeeded": "green",
    "running": "cyan",
    "queued": "yellow",
    "failed": "red",
    "expired": "red",
    "cancelled": "magenta",
    "ok": "green",
    "warn": "yellow",
    "fail": "red",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column."""

    name: str
    right: bool = False  # numbers stand right
    wraps: bool = False  # prose: may take several lines on a narrow terminal
    spare: int = 0  # on a narrow terminal it may be left out, the highest number first; 0 = never


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns. An empty ``title`` shows none; ``bare`` leaves out the head."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    title: str = ""
    bare: bool = False
    empty: str = ""  # said instead of a table without rows


def plain(table: Table) -> str:
    """Aligned text without colour. Nothing is cut: the reader may be a program."""
    head = [] if table.bare else [[column.name for column in table.columns]]
    body = [[printable(cell) for cell in row] for row in table.rows]
    widths = _widths(head + body, len(table.columns))
    lines = [table.title] if table.title else []
    for line in head + body:
        cells = (
            _padded(cell, width, column.right)
            for cell, width, column in zip(line, widths, table.columns, strict=True)
        )
        lines.append(GAP.join(cells).rstrip())
    return "\n".join(lines)


def fitted(table: Table, width: int) -> Table:
    """The table without the columns that a terminal of that width has no room for."""
    widths = _widths([[column.name for column in table.columns], *table.rows], len(table.columns))
    need = [min(w, NARROW) if c.wraps else w for w, c in zip(widths, table.columns, strict=True)]
    kept = list(range(len(table.columns)))
    while sum(need[at] + len(GAP) for at in kept) - len(GAP) > width:
        out = max(kept, key=lambda at: table.columns[at].spare)
        if not table.columns[out].spare:
            break
        kept.remove(out)
    rows = [[row[at] for at in kept] for row in table.rows]
    return replace(table, columns=[table.columns[at] for at in kept], rows=rows)


def _widths(lines: Sequence[Sequence[str]], columns: int) -> list[int]:
    return [max((_width(line[at]) for line in lines), default=0) for at in range(columns)]


def _padded(cell: str, width: int, right: bool) -> str:
    blank = " " * (width - _width(cell))
    return blank + cell if right else cell + blank


def _width(text: str) -> int:
    """Columns of a terminal that text takes: wide letters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def show_rich(table: Table, stream: TextIO) -> None:
    """Print it on a terminal, as wide as that is; NO_COLOR is honoured."""
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    table = fitted(table, console.width)
    drawn = RichTable(box=None, show_header=not table.bare, pad_edge=False, padding=(0, len(GAP), 0, 0))
    for column in table.columns:
        drawn.add_column(
            column.name,
            justify="right" if column.right else "left",
            no_wrap=not column.wraps,
            overflow="fold",
        )
    for row in table.rows:
        drawn.add_row(*(Text(printable(cell), style=STYLES.get(cell, "")) for cell in row))
    if table.title:
        console.print(table.title, style="bold")
    console.print(drawn)
