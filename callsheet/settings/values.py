"""From what a file or a variable says to a value of the setting's type, and back to text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")

_EXPECTED = {
    "str": "is not text",
    "int": "is not a whole number",
    "float": "is not a number",
    "bool": "is neither true nor false",
    "Path": "is not a path",
    "tuple[str, ...]": "is not a list of names",
}


def parse(kind: str, raw: object) -> object:
    """What ``raw`` says, read as ``kind`` when it is text; anything else is left as it is."""
    if not isinstance(raw, str) or kind == "str":
        return raw
    if kind == "bool":
        word = raw.strip().lower()
        return True if word in _TRUE else False if word in _FALSE else raw
    if kind == "Path":
        return Path(raw) if raw else raw
    return tuple(raw.replace(",", " ").split()) if kind.startswith("tuple") else _number(kind, raw)


def _number(kind: str, text: str) -> float | int | str:
    try:
        return int(text) if kind == "int" else float(text)
    except ValueError:
        return text


def convert(kind: str, value: object) -> Any:
    """``value`` as ``kind`` (a field's annotation) where nothing is lost: int to float, list to tuple.

    Raises ValueError that says what was expected; it never repeats the value.
    """
    if kind == "float" and type(value) is int:
        return float(value)
    if kind == "Path" and isinstance(value, Path):
        return Path.cwd() / value.expanduser()
    if (
        kind.startswith("tuple")
        and isinstance(value, list | tuple)
        and all(isinstance(v, str) for v in value)
    ):
        return tuple(value)
    if type(value).__name__ != kind:
        raise ValueError(_EXPECTED[kind])
    return value


def show(value: object) -> str:
    """A value as people write it: ``true``, ``604800``, ``h100,a100``."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
