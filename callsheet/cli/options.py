"""Options that every command takes, and types of arguments."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from callsheet.records.requests import MAX_AHEAD_S

if TYPE_CHECKING:
    Seconds = click.ParamType[float]
else:
    Seconds = click.ParamType  # older releases of click cannot be subscripted

F = TypeVar("F", bound=Callable[..., Any])

OUTPUT = "callsheet.output"
FORMATS = ("table", "json")
USER = "CALLSHEET_USER"  # settings/sources.py knows that it is no setting

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")


def common(command: F) -> F:
    """Add ``-o`` and ``--debug``, which every level takes; the innermost ``-o`` counts."""
    output = click.option(
        "-o",
        "--output",
        type=click.Choice(FORMATS),
        expose_value=False,
        callback=_remember_output,
        help="table for people (default), json for programs.",
    )
    debug = click.option(
        "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error, too."
    )
    return output(debug(command))


def _remember_output(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.meta[OUTPUT] = value  # click shares it between the levels of one call


def signed(command: F) -> F:
    """Add ``--as``: ``who`` gives the order, kept where its reason is kept."""
    return click.option(
        "--as",
        "who",
        envvar=USER,
        default=caller,
        callback=_named,
        help=f"Who does it, kept beside the reason (default: ${USER}, or user@host).",
    )(command)


def _named(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if not value.strip():
        raise click.BadParameter("a name is needed, kept with what you do; leave it out for user@host")
    return value.strip()


def caller() -> str:
    """``user@host`` of this process."""
    import getpass
    import socket

    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user may have no name
        user = f"uid-{os.getuid()}"
    return f"{user}@{socket.gethostname()}"


def json_wanted() -> bool:
    """Whether the running command was asked for JSON."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and ctx.meta.get(OUTPUT) == "json"


def debug_wanted() -> bool:
    """Whether the running command was asked for tracebacks: ``run.py`` has read that before it began."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and ctx.find_root().obj is True


class Span(Seconds):
    """A time span of up to 366 days: ``90``, ``90s``, ``10m``, ``2h``, ``1d``; becomes seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds. Fails with what is allowed."""
        seconds = span_s(str(value))
        if seconds is None:
            self.fail(f"{value!r} is no duration: write 90s, 10m, 2h or 1d", param, ctx)
        if seconds > MAX_AHEAD_S:
            self.fail(f"{str(value)[:64]!r} is too long; allowed: up to 366 days (366d)", param, ctx)
        return seconds


class Moment(Seconds):
    """A moment: a span from now, or an ISO 8601 time; becomes seconds since the epoch."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds since the epoch. Fails with what is allowed."""
        at = moment_s(str(value), now=time.time())
        if at is None:
            self.fail(
                f"{value!r} is no time: write a span from now (90s, 10m, 2h, 1d) "
                "or an ISO 8601 time (2030-01-31T18:00:00Z; local time without a zone)",
                param,
                ctx,
            )
        ahead_s = at - time.time()
        if not 0 < ahead_s <= MAX_AHEAD_S:
            when = "is more than 366 days ahead" if ahead_s > 0 else "has passed"
            self.fail(f"{str(value)[:64]!r} {when}; allowed: from now (10m) to 366 days ahead", param, ctx)
        return at


def span_s(text: str) -> float | None:
    """Seconds that a span says; None when it is none. A bare number means seconds."""
    match = _SPAN.fullmatch(text.strip())
    return float(match[1]) * _UNITS_S[match[2] or "s"] if match else None


def moment_s(text: str, *, now: float) -> float | None:
    """Seconds since the epoch that ``text`` says; None when it says none."""
    span = span_s(text.removeprefix("+"))
    if span is not None:
        return now + span
    try:
        at = datetime.fromisoformat(text.strip())
        return (at if at.tzinfo else at.astimezone()).astimezone(UTC).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
