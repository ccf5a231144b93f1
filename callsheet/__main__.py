"""``python -m callsheet``: the command line."""

from __future__ import annotations

import sys

from callsheet.cli import main

if __name__ == "__main__":
    sys.exit(main())
