"""A plain Celery app with a task that keeps its pool child busy, for tests that kill its parents."""

from __future__ import annotations

import os
import time
from pathlib import Path

from celery import Celery

app = Celery("prefork", broker=os.environ.get("PREFORK_BROKER", "memory://"))


@app.task
def busy(pid_file: str) -> None:
    """Write the pool child's pid, then keep it busy where it cannot notice that its parent died."""
    Path(pid_file).write_text(str(os.getpid()))
    time.sleep(120)
