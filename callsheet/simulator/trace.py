"""Reads recorded traffic: a CSV file, plain or gzip, one job a line.

Columns: ``arrival_s``, ``tenant`` (or ``user``), ``tier``, ``model``, ``service_s``, ``steps``.
Others are ignored.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections.abc import Iterator
from pathlib import Path

from callsheet.errors import SettingsError
from callsheet.simulator.scenario import Arrival

COLUMNS = ("arrival_s", "tenant", "tier", "model", "service_s", "steps")
_GZIP = b"\x1f\x8b"  # what every gzip file begins with
_NEXT = f"Give a CSV file, plain or gzip, with the columns {', '.join(COLUMNS)}"


def read_trace(path: Path) -> tuple[Arrival, ...]:
    """The jobs of a trace, in order of arrival; ``service_s`` is the work on the reference GPU.

    Raises SettingsError for a file that is missing, damaged or empty, and for a line that is wrong.
    """
    lines = csv.reader(io.StringIO(_text(path), newline=""))
    try:
        places = _places(path, next(lines, []))
        arrivals = list(_rows(path, lines, places))
    except csv.Error as error:
        raise SettingsError(f"trace {path}, line {lines.line_num}: {error}. {_NEXT}.") from None
    if not arrivals:
        raise SettingsError(f"trace {path} holds no job: there is nothing to replay. {_NEXT}.")
    return tuple(sorted(arrivals, key=lambda arrival: arrival.at_s))


def _text(path: Path) -> str:
    """The text of a file, unpacked when it is gzip."""
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if data.startswith(_GZIP) else data).decode("utf-8-sig")
    except FileNotFoundError:
        raise SettingsError(f"trace {path} does not exist. {_NEXT}.") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise SettingsError(f"trace {path} cannot be read: {error}. {_NEXT}.") from None


def _places(path: Path, header: list[str]) -> list[int]:
    """Where each of ``COLUMNS`` stands in a line."""
    names = [name.strip() for name in header]
    if "tenant" not in names:
        names = ["tenant" if name == "user" else name for name in names]
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise SettingsError(f"trace {path} lacks the column {', '.join(missing)}. {_NEXT}.")
    return [names.index(name) for name in COLUMNS]


def _rows(path: Path, lines: Iterator[list[str]], places: list[int]) -> Iterator[Arrival]:
    for number, line in enumerate(lines, start=2):
        if not line:
            continue
        try:
            yield _row(line, places)
        except (ValueError, IndexError) as error:
            why = "it has too few fields" if isinstance(error, IndexError) else error
            raise SettingsError(f"trace {path}, line {number}: {why}. Correct or remove the line.") from None


def _row(line: list[str], places: list[int]) -> Arrival:
    """One line. Raises ValueError for a bad value, IndexError for a short line."""
    at, tenant, tier, model, service, steps = [line[place].strip() for place in places]
    for column, word in (("tenant", tenant), ("tier", tier), ("model", model)):
        if not word:
            raise ValueError(f"{column} is empty")
    work_s = _number("service_s", service)
    if work_s == 0.0:
        raise ValueError("service_s is 0, a job takes some time")
    return Arrival(
        _number("arrival_s", at), tenant, tier, model, work_s, max(1, int(_number("steps", steps)))
    )


def _number(column: str, text: str) -> float:
    """A finite number from 0 up. Raises ValueError."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{column} is {text!r}, not a number") from None
    if not math.isfinite(value) or value < 0.0:
        raise ValueError(f"{column} is {text!r}; allowed: a number from 0 up")
    return value
