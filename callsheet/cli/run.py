"""One call of the command line: arguments in, exit code out. The only place that catches everything."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import click

from callsheet.cli.failures import BROKEN_PIPE, INTERRUPTED, explain
from callsheet.cli.root import root

PROGRAM = "callsheet"
COMPLETE = "_CALLSHEET_COMPLETE"
DEBUG = "CALLSHEET_DEBUG"  # settings/sources.py knows that it is no setting


@dataclass(frozen=True, slots=True)
class Asked:
    """How errors shall be told. Read from the bare arguments: an error may come before they are parsed."""

    json: bool
    debug: bool

    @classmethod
    def read(cls, args: Sequence[str], env: Mapping[str, str]) -> Asked:
        """What the arguments before ``--`` and the environment ask for; the last ``-o`` counts."""
        own = list(args[: args.index("--")] if "--" in args else args)
        debug = "--debug" in own or env.get(DEBUG, "").lower() in ("1", "true", "yes", "on")
        return cls(_output(own) == "json", debug)


def _output(args: Sequence[str]) -> str:
    found = ""
    for at, arg in enumerate(args):
        if arg in ("-o", "--output"):
            found = args[at + 1] if at + 1 < len(args) else ""
        elif arg.startswith("--output="):
            found = arg.removeprefix("--output=")
        elif arg.startswith("-o"):
            found = arg.removeprefix("-o")
    return found


def _open_closed_streams() -> None:
    """A caller may have closed our streams (``>&-``): Python has None for them."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115  open to the end
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  open to the end


def main(args: Sequence[str] | None = None) -> int:
    """Run one call and answer its exit code (see ``failures``). Never ends in a bare traceback."""
    given = list(sys.argv[1:] if args is None else args)
    if COMPLETE in os.environ:
        root.main(given, prog_name=PROGRAM)  # the shell asks for completions; ends the process
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        _never_fail_on_letters(stream)
    asked = Asked.read(given, os.environ)
    try:
        code = _invoke(given, debug=asked.debug)
        sys.stdout.flush()
    except BrokenPipeError:
        _drop(sys.stdout)
        return BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  whatever it is, the user gets a message and a code
        return _tell(error, asked)
    return code


def _invoke(args: list[str], *, debug: bool) -> int:
    try:
        with root.make_context(PROGRAM, args, obj=debug) as context:
            code = root.invoke(context)
    except click.exceptions.Exit as end:
        code = end.exit_code
    return code if isinstance(code, int) else 0


def _tell(error: Exception, asked: Asked) -> int:
    failure = explain(error)
    if asked.debug:
        import traceback

        traceback.print_exception(error)
    try:
        print(failure.as_json() if asked.json else failure.as_text(), file=sys.stderr)
        sys.stdout.flush()
    except OSError:
        _drop(sys.stdout)  # a full disk, say: the interpreter shall not stumble over it again at its end
    return failure.exit_code


def _never_fail_on_letters(stream: TextIO) -> None:
    """Write what the terminal's encoding lacks as an escape instead of failing."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _drop(stream: TextIO) -> None:
    """Send what is still in the buffer to nowhere, so that the interpreter's own flush is quiet."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
