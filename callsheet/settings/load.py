"""From defaults, a file and variables to one :class:`Settings`; all faults of all sources in one error."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from callsheet.settings.checks import raise_faults, say, unknown, value_faults
from callsheet.settings.derive import derive
from callsheet.settings.schema import FIELDS, Settings
from callsheet.settings.sources import PREFIX, Given, find_file, from_env, from_file
from callsheet.settings.values import convert, parse

_BY_NAME = {field.name: field for field in FIELDS}


def load(env: Mapping[str, str] | None = None, file: Path | None = None) -> Settings:
    """Read the settings: defaults, then a TOML file, then ``CALLSHEET_*`` variables; the later one wins.

    ``env`` defaults to the process's environment; ``file`` to the one that ``CALLSHEET_CONFIG`` names, else
    to ./callsheet.toml if it exists. Raises SettingsError that lists every fault of every source.
    """
    env = os.environ if env is None else env
    given, faults = _read(env, file)
    values = {f.name: f.default for f in FIELDS if f.default is not None}
    origins: dict[str, str] = {}
    for one in given:
        faults += _take(one, values, origins)
    origins = {name: origins.get(name, "default") for name in values}
    values, origins = derive(values, origins, env)
    raise_faults(faults + value_faults(FIELDS, values, origins))
    return Settings(**values, origins=origins)


def _read(env: Mapping[str, str], file: Path | None) -> tuple[list[Given], list[str]]:
    path, named_by = find_file(file, env)
    variables = list(from_env(env, frozenset(_BY_NAME)))
    try:
        return (from_file(path, named_by) if path else []) + variables, []
    except ValueError as error:
        return variables, [str(error)]


def _take(given: Given, values: dict[str, Any], origins: dict[str, str]) -> list[str]:
    """Put one given value among ``values``; answers its faults. It hides earlier sources in any case."""
    field = _BY_NAME.get(given.name)
    if field is None:
        return [_unknown(given)]
    values.pop(given.name, None)
    if field.default is None and given.raw == "":
        return []  # to be derived
    try:
        value = convert(
            str(field.type), _located(given, parse(str(field.type), given.raw), field.metadata["unit"])
        )
    except ValueError as error:
        return [say(field, given.raw, given.origin, str(error))]
    values[given.name], origins[given.name] = value, given.origin
    return []


def _unknown(given: Given) -> str:
    if given.origin.startswith(PREFIX):
        return unknown(given.name, "the environment", _BY_NAME, spell=lambda name: PREFIX + name.upper())
    return unknown(given.name, given.origin, _BY_NAME)


def _located(given: Given, value: object, unit: str) -> object:
    """Relative paths start where they were written."""
    if isinstance(value, Path):
        return given.base / value.expanduser()
    if unit == "file" and isinstance(value, str) and value:
        return str(given.base / Path(value).expanduser())
    return value
