"""What the environment and a TOML file say: raw values with where each came from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PREFIX = "CALLSHEET_"
FILE_VARIABLE = "CALLSHEET_CONFIG"  # names the settings file
GPU_VARIABLE = "CALLSHEET_GPU"  # the launcher tells each worker its GPU, as a JSON object
DEBUG_VARIABLE = "CALLSHEET_DEBUG"  # the command line shows tracebacks
USER_VARIABLE = "CALLSHEET_USER"  # who acts, as histories show it; default: user@host
NO_SETTINGS = (FILE_VARIABLE, DEBUG_VARIABLE, USER_VARIABLE)
DEFAULT_FILE = "callsheet.toml"

#: Kubernetes puts such variables into every container when a Service is called callsheet or callsheet-<x>.
_SERVICE_LINK = re.compile(
    r"CALLSHEET(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)"
)
_SERVICE_VALUE = re.compile(r"(tcp|udp|sctp)://\S+|\d{1,5}|[0-9a-fA-F.:]+|tcp|udp|sctp")


@dataclass(frozen=True, slots=True)
class Given:
    """One value as somebody wrote it."""

    name: str  # as a setting: lease_s
    raw: object
    origin: str  # CALLSHEET_LEASE_S, or "callsheet.toml: lease_s"
    base: Path  # where relative paths start: the file's folder, or the working folder


def from_env(env: Mapping[str, str], known: frozenset[str]) -> Iterator[Given]:
    """Every ``CALLSHEET_*`` variable that is meant for us, in order of name."""
    for variable in sorted(env):
        name = variable.removeprefix(PREFIX).lower()
        if not variable.startswith(PREFIX) or _is_no_setting(variable, env[variable]):
            continue
        if not _is_service_link(variable, env[variable], known=name in known):
            yield Given(name, env[variable], variable, Path.cwd())


def _is_no_setting(variable: str, value: str) -> bool:
    # a person who writes CALLSHEET_GPU=h100 meant CALLSHEET_GPUS and is to be told
    return variable in NO_SETTINGS or (variable == GPU_VARIABLE and value.startswith("{"))


def _is_service_link(variable: str, value: str, *, known: bool) -> bool:
    """``CALLSHEET_FLOWER_PORT=tcp://10.0.0.7:5555`` comes from Kubernetes, ``...=5555`` from a person."""
    if known:
        return "://" in value and variable.endswith("_PORT") and bool(_SERVICE_VALUE.fullmatch(value))
    return bool(_SERVICE_LINK.fullmatch(variable) and _SERVICE_VALUE.fullmatch(value))


def find_file(argument: Path | None, env: Mapping[str, str]) -> tuple[Path | None, str]:
    """The settings file and who named it: argument, ``CALLSHEET_CONFIG`` or nobody (./callsheet.toml)."""
    if argument is not None:
        return argument, "argument"
    if env.get(FILE_VARIABLE):
        return Path(env[FILE_VARIABLE]).expanduser(), FILE_VARIABLE
    return (Path(DEFAULT_FILE), "working folder") if Path(DEFAULT_FILE).is_file() else (None, "")


def from_file(path: Path, named_by: str) -> list[Given]:
    """Every key of a TOML file. Raises ValueError that says what is wrong with the file."""
    import tomllib  # most processes have no file, and every millisecond of `callsheet -h` counts

    try:
        with path.open("rb") as stream:
            table = tomllib.load(stream)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"settings file {path} (named by {named_by}) is not TOML: {error}") from None
    except OSError as error:
        raise ValueError(
            f"settings file {path} (named by {named_by}) cannot be read: {error.strerror}"
        ) from None
    return [Given(key, value, f"{path}: {key}", path.absolute().parent) for key, value in table.items()]
