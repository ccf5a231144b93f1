"""Data to stdout, as one JSON document or as tables; talk to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from callsheet.cli.options import json_wanted
from callsheet.cli.table import Table, plain, show_rich


def emit(document: Mapping[str, Any], *tables: Table) -> None:
    """The answer of a command: ``document`` when JSON was asked for, else ``tables``."""
    if json_wanted():
        print(to_json(document, ascii_only=not _is_unicode(sys.stdout.encoding)), flush=True)
        return
    for at, table in enumerate(table for table in tables if table.rows or table.empty):
        if at:
            print()
        _show(table)
    sys.stdout.flush()


def say(text: str) -> None:
    """Talk: what a person wants to know and a program does not."""
    print(text, file=sys.stderr, flush=True)


def to_json(document: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """One valid document: no NaN, no ANSI codes."""
    return json.dumps(document, indent=2, ensure_ascii=ascii_only, allow_nan=False)


def _show(table: Table) -> None:
    if not table.rows:
        say(table.empty)
    elif sys.stdout.isatty():
        show_rich(table, sys.stdout)
    else:
        print(plain(table))


def _is_unicode(encoding: str | None) -> bool:
    return (encoding or "").lower().replace("-", "").startswith("utf")
