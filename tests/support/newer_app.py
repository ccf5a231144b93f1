"""The quick worker as a later version of callsheet, which writes and reads one format more than this one.

The module of records is executed with other numbers before anything else imports it: dataclasses, scripts and
codec take theirs from there by value. As ``celery -A tests.support.newer_app`` it is that version's worker.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

RECORDS = "callsheet.records.jobs"
NEWER = 2


def become_newer() -> None:
    """Let everything that this process imports from now on speak format 2 too."""
    assert RECORDS not in sys.modules, f"{RECORDS} was imported already: its numbers are everywhere"
    spec = importlib.util.find_spec(RECORDS)
    assert spec is not None
    assert spec.origin is not None
    module = importlib.util.module_from_spec(spec)
    text = Path(spec.origin).read_text()
    source, found = re.subn(r"(?m)^((?:CHECKPOINT_)?FORMAT) = \d+", rf"\1 = {NEWER}", text)
    assert found == 2, f"{found} numbers of formats in {spec.origin}"
    sys.modules[RECORDS] = module
    exec(compile(source, spec.origin, "exec"), module.__dict__)


become_newer()

from tests.support.quick_worker import app  # noqa: E402  not before the numbers are others

__all__ = ["app"]
