"""``callsheet worker``: a worker on each GPU of this machine."""

from __future__ import annotations

import os
import sys

import click

from callsheet.cli.extras import require_worker
from callsheet.cli.options import common


@click.command()
@click.option("--gpus", help="Declare GPUs instead of asking NVML: h100,a100.")
@common
def worker(gpus: str | None) -> None:
    """Run a worker on each GPU of this machine until Ctrl-C."""
    from callsheet.settings import load

    load()  # a wrong setting is told here, before anything starts
    require_worker("a worker")
    declared = ["--gpus", gpus] if gpus else []
    # This process becomes the launcher: torch is never loaded here, and signals reach it at once.
    os.execv(sys.executable, [sys.executable, "-m", "callsheet.workers", "run", *declared])  # noqa: S606
