"""``callsheet models``: the models that can be served."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callsheet.cli.extras import require_worker
from callsheet.cli.group import Group
from callsheet.cli.options import common, debug_wanted, json_wanted
from callsheet.cli.output import emit

if TYPE_CHECKING:
    from callsheet.catalog import Catalog
    from callsheet.records.models import ModelSpec


def catalog() -> Catalog:
    """The models of this deployment."""
    from callsheet.catalog import load_catalog
    from callsheet.settings import load

    settings = load()
    return load_catalog(settings.catalog, settings.models_dir)


@click.group(cls=Group, invoke_without_command=True)
@common
@click.pass_context
def models(ctx: click.Context) -> None:
    """See the models that can be served, or build the tiny ones. Alone: list them."""
    if ctx.invoked_subcommand is None:
        _list()


@models.command("list")
@common
def list_() -> None:
    """List the models that can be served."""
    _list()


def _list() -> None:
    from callsheet.cli.model_view import model_document, model_list

    known = catalog()
    seen = [(spec, known.resolve_source(spec)) for spec in known]
    emit({"models": [model_document(spec, source) for spec, source in seen]}, model_list(list(known)))


@models.command()
@click.argument("name")
@common
def show(name: str) -> None:
    """Show one model: what may be asked of it, what it needs, where its weights come from."""
    from callsheet.cli.model_view import model_document, model_facts
    from callsheet.errors import ModelNotFound

    known = catalog()
    if name not in known:
        raise ModelNotFound(f"model {name[:64]!r} is not in the catalog; {known.hint(name)}")
    spec = known.get(name)
    source = known.resolve_source(spec)
    emit({"model": model_document(spec, source)}, model_facts(spec, source))


@models.command("build-tiny")
@click.argument("names", nargs=-1)
@common
def build_tiny(names: tuple[str, ...]) -> int:
    """Build the tiny models (default: all): real pipelines with random weights, for trying out."""
    from callsheet.settings import load

    load()  # a wrong setting is told here
    require_worker("building a model")
    command = [sys.executable, "-m", "callsheet.workers", "build-tiny", *names]
    built = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode == 0 and json_wanted():
        folders = [Path(line) for line in built.stdout.splitlines() if line]
        emit({"models": [{"name": folder.name, "folder": str(folder)} for folder in folders]})
    elif not json_wanted():
        print(built.stdout, end="")
    return built.returncode


@models.command()
@click.argument("model", metavar="NAME|FOLDER")
@click.option("--steps", type=click.IntRange(1), help="Denoising steps (default: 6).")
@click.option("--size", help="WIDTHxHEIGHT in pixels (default: the model's; of a folder: 128x128).")
@click.option("--frames", type=click.IntRange(1), help="Frames (default: the model's; of a folder: 9).")
@common
def verify(model: str, steps: int | None, size: str | None, frames: int | None) -> int:
    """Check that a model resumes bit for bit from every step: a catalog model or a diffusers folder."""
    from callsheet.errors import ModelNotFound

    known = catalog()
    if model not in known and not Path(model).expanduser().is_dir():
        raise ModelNotFound(
            f"{model[:200]!r} is neither a model of the catalog nor a folder; {known.hint(model)}"
        )
    wanted = _size(size)
    if model in known:
        _check_picture(known.get(model), {"size": size, "frames": frames, "steps": steps})
    require_worker("verifying a model")
    command = [sys.executable, "-m", "callsheet.workers", "verify", model]
    for option, value in (("--steps", steps), ("--size", wanted), ("--frames", frames)):
        command += [option, str(value)] if value else []
    command += ["--debug"] if debug_wanted() else []
    return subprocess.run([*command, "-o", "json" if json_wanted() else "text"], check=False).returncode


def _check_picture(spec: ModelSpec, wanted: Mapping[str, object]) -> None:
    """Raises UsageError for a film that nobody may ask of the model."""
    from callsheet.catalog.validate import picture_faults

    faults = picture_faults(spec, wanted)
    if faults:
        raise click.UsageError("; ".join(faults))


def _size(text: str | None) -> str:
    """``WIDTHxHEIGHT`` as it was given, or "". Raises UsageError when it is something else."""
    if text and not re.fullmatch(r"[1-9]\d{0,5}x[1-9]\d{0,5}", text):
        raise click.UsageError(f"{text!r} is no size: write WIDTHxHEIGHT in pixels, 480x320")
    return text or ""
