"""``callsheet up``: the whole stack on one machine."""

from __future__ import annotations

from pathlib import Path

import click

from callsheet.cli.extras import require_worker
from callsheet.cli.options import common


@click.command()
@click.option("--gpus", help="Declare GPUs instead of asking NVML: h100,a100.")
@click.option("--no-flower", is_flag=True, help="Leave out Flower, the web page of the operators.")
@click.option(
    "--data-dir", type=click.Path(file_okay=False, path_type=Path), help="Keep everything in this folder."
)
@click.option("--quiet", is_flag=True, help="Only up's own words, not the log of its parts.")
@common
def up(gpus: str | None, no_flower: bool, data_dir: Path | None, quiet: bool) -> int:
    """Run the whole stack on this machine until Ctrl-C.

    An embedded server when no broker is set, a worker per GPU, two beats, two controllers, Flower.
    """
    from callsheet.settings import load

    settings = load()
    require_worker("the stack")
    if data_dir is not None:
        settings = settings.replace("--data-dir", data_dir=data_dir.absolute())
    from callsheet.stack.up import UpOptions, run_up

    options = UpOptions(gpus=names(gpus), flower=not no_flower, quiet=quiet)
    return run_up(settings, options)


def names(text: str | None) -> tuple[str, ...]:
    """``h100,a100`` as a tuple."""
    return tuple((text or "").replace(",", " ").split())
