"""``python -m callsheet.stack PART``: one part of the stack alone (see the Procfile)."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from callsheet.errors import CallsheetError, SettingsError
from callsheet.settings import load
from callsheet.stack.part import run_part


def main(args: Sequence[str]) -> int:
    """Run one part; answers its exit code."""
    if len(args) != 1 or args[0].startswith("-"):
        print(
            "Usage: python -m callsheet.stack PART  (server, workers, beat-1 ...; see Procfile)",
            file=sys.stderr,
        )
        return SettingsError.exit_code
    try:
        run_part(args[0], load())
    except CallsheetError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
