"""Reads TOML tables into dataclasses and gathers every fault on the way, so that one error tells them all."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, TypeVar, cast

T = TypeVar("T")

_EMPTY: Mapping[str, object] = {"float": 0.0, "int": 0, "str": ""}  # by a field's type
_LARGEST = 1e15  # beyond it a second has no fraction
_ALLOWED = {"float": "a number from 0 up", "int": "a whole number from 0 up", "str": "a text"}


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a file."""

    place: str  # [costs], [[fleet]] 2 ...; "" = the top
    values: Mapping[str, object]
    faults: list[str]  # of the whole file

    def fault(self, text: str) -> None:
        """Note a fault of this table."""
        self.faults.append(f"{self.place}: {text}" if self.place else text)

    def known(self, *keys: str) -> None:
        """Note every key that is not one of ``keys``."""
        for key in self.values:
            if key not in keys:
                near = difflib.get_close_matches(key, keys, n=1)
                hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(keys)}"
                self.fault(f"unknown key {key}; {hint}")

    def value(self, key: str, kind: str, default: object = MISSING) -> Any:
        """The value of a key: ``kind`` is float, int or str. Notes a fault when it is missing or wrong."""
        value = self.values.get(key, default)
        if value is MISSING:
            self.fault(f"{key} is missing; allowed: {_ALLOWED[kind]}")
        elif _is(value, kind):
            return float(cast("float", value)) if kind == "float" else value
        else:
            self.fault(f"{key} is {value!r}; allowed: {_ALLOWED[kind]}")
        return _EMPTY[kind]

    def table(self, key: str) -> Table:
        """The table under a key; an empty one when there is none."""
        inner = self.values.get(key, {})
        if not isinstance(inner, dict):
            self.fault(f"{key} is {inner!r}; allowed: a table")
            inner = {}
        return Table(f"[{self._path(key)}]", inner, self.faults)

    def tables(self, key: str) -> list[Table]:
        """The tables of an array ``[[key]]``, in order."""
        inner = self.values.get(key, [])
        if isinstance(inner, list) and all(isinstance(each, dict) for each in inner):
            path = self._path(key)
            return [Table(f"[[{path}]] {place}", each, self.faults) for place, each in enumerate(inner, 1)]
        self.fault(f"{key} is {inner!r}; allowed: tables [[{self._path(key)}]]")
        return []

    def fill(
        self,
        kind: type[T],
        *,
        renamed: Mapping[str, str] | None = None,
        beside: Sequence[str] = (),
        **given: object,
    ) -> T:
        """A dataclass of numbers and texts, from the keys of its fields; a missing key means its default.

        ``renamed`` says which fields have another key; ``given`` fields are not read; keys ``beside`` are
        read elsewhere. Notes every other key, and every wrong value.
        """
        read = {field: (renamed or {}).get(field.name, field.name) for field in _simple(kind, given)}
        self.known(*read.values(), *beside)
        made = {field.name: self.value(key, str(field.type), field.default) for field, key in read.items()}
        return kind(**made, **given)

    def _path(self, key: str) -> str:
        return f"{self.place.strip('[]')}.{key}" if self.place else key


def _simple(kind: type[object], given: Mapping[str, object]) -> list[Field[Any]]:
    """The fields that a TOML key can give."""
    every = fields(cast("Any", kind))
    return [field for field in every if field.type in _EMPTY and field.name not in given]


def _is(value: object, kind: str) -> bool:
    """Whether a value is of a kind; numbers are finite and not negative."""
    if kind == "str":
        return isinstance(value, str)
    if isinstance(value, bool) or not isinstance(value, int if kind == "int" else (int, float)):
        return False
    return 0 <= cast("float", value) <= _LARGEST
