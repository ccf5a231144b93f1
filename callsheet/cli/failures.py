"""From an exception to what the user reads and the exit code: the one place that knows this.

::

    0 ok          1 failed          2 usage          3 not found          4 timeout
    5 broker or store unreachable   6 refused        130 Ctrl-C           141 the reader of our output left
"""

from __future__ import annotations

from dataclasses import dataclass

import click

from callsheet.cli.group import MissingCommand
from callsheet.errors import CallsheetError, NotAdmitted, Refused, Unreachable, WaitTimeout

FAILED = CallsheetError.exit_code
TIMEOUT = WaitTimeout.exit_code
UNREACHABLE = Unreachable.exit_code
REFUSED = Refused.exit_code
INTERRUPTED = 130
BROKEN_PIPE = 141

#: Outages that reach us as Celery's or Redis' own classes. Known by name, so that neither has to be loaded.
_OUTAGES = {"ConnectionError", "TimeoutError", "OperationalError", "BusyLoadingError", "InvalidResponse"}

_CHECK = "`callsheet doctor` says what to do"
_BUG = "This is a fault of callsheet: run it again with --debug and report what it prints"


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as it is told."""

    kind: str  # name of the error's class
    message: str
    exit_code: int
    usage: str = ""  # how the command is called, for a wrong call
    retry_after_s: float = 0.0  # when it may go well; 0 = not known

    def as_text(self) -> str:
        """For people."""
        return f"{self.usage}Error: {self.message}"

    def as_json(self) -> str:
        """For programs: one line."""
        import json  # only a failure that is told to a program needs it

        error = {"type": self.kind, "message": self.message, "exit_code": self.exit_code}
        if self.retry_after_s:
            error["retry_after_s"] = self.retry_after_s
        return json.dumps({"error": error})


def explain(error: Exception) -> Failure:
    """What to tell about an error."""
    kind = type(error).__name__
    if isinstance(error, CallsheetError):
        later_s = error.retry_after_s if isinstance(error, NotAdmitted) else 0.0
        return Failure(kind, str(error), error.exit_code, retry_after_s=later_s)
    if isinstance(error, click.UsageError):
        return Failure("UsageError", error.format_message(), error.exit_code, _usage(error))
    if isinstance(error, click.ClickException):
        return Failure(kind, error.format_message(), error.exit_code)
    if _is_outage(error):
        return Failure(kind, f"the broker or the store does not answer: {error}. {_CHECK}", UNREACHABLE)
    if isinstance(error, OSError):
        return Failure(kind, str(error), FAILED)
    return Failure(kind, f"unexpected {kind}: {error}. {_BUG}", FAILED)


def _usage(error: click.UsageError) -> str:
    """The lines above the message: the whole help for a bare group, else how the command is called."""
    if error.ctx is None:
        return ""
    if isinstance(error, MissingCommand):
        return f"{error.ctx.get_help()}\n\n"
    return f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n\n"


def _is_outage(error: Exception) -> bool:
    return any(
        base.__name__ in _OUTAGES
        and base.__module__.partition(".")[0] in ("redis", "kombu", "celery", "amqp")
        for base in type(error).__mro__
    )
