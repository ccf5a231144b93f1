"""``python -m callsheet.workers run | gpus | build-tiny | verify``: what happens on a GPU node."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from callsheet.errors import CallsheetError
from callsheet.settings import Settings, load


def main(args: Sequence[str] | None = None) -> int:
    """Run one command; answers its exit code."""
    options = _parser().parse_args(args)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)
    try:
        code = _COMMANDS[options.command](options)
    except CallsheetError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_code
    return code or 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m callsheet.workers")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="start a Celery worker on each GPU of this machine")
    gpus = commands.add_parser("gpus", help="print the GPUs of this machine")
    for command in (run, gpus):
        command.add_argument("--gpus", default="", help="declare GPUs instead of asking NVML: h100,a100")
    gpus.add_argument("-o", "--output", choices=("text", "json"), default="text")
    tiny = commands.add_parser("build-tiny", help="build the tiny models for trying out and tests")
    tiny.add_argument("names", nargs="*", metavar="NAME", help="tiny-wan, tiny-ltx (default: all)")
    verify = commands.add_parser("verify", help="resume a model from every step and compare the films")
    verify.add_argument("model", help="name in the catalog, or a diffusers folder")
    verify.add_argument("--steps", type=int, default=0)
    verify.add_argument("--size", type=_size, default=None, help="WIDTHxHEIGHT")
    verify.add_argument("--frames", type=int, default=0)
    verify.add_argument("--debug", action="store_true", help="show the traceback of a model that fails")
    verify.add_argument("-o", "--output", choices=("text", "json"), default="text")
    return parser


def _size(text: str) -> tuple[int, int]:
    width, height = text.lower().split("x")
    return int(width), int(height)


def _settings(options: argparse.Namespace) -> Settings:
    declared = tuple(options.gpus.replace(",", " ").split())
    return load().replace("--gpus", gpus=declared) if declared else load()


def _run(options: argparse.Namespace) -> None:
    from callsheet.workers.launch import run_workers

    run_workers(_settings(options))


def _gpus(options: argparse.Namespace) -> None:
    import os

    from callsheet.workers.devices import discover

    devices = discover(_settings(options).gpus, visible=os.environ.get("CUDA_VISIBLE_DEVICES"))
    if options.output == "json":
        print(json.dumps([asdict(device) for device in devices], indent=2))
        return
    for device in devices:
        print(f"{device.name:<16} {device.gpu_class:<12} {device.vram_gib:>4} GiB  {device.uuid}")


def _build_tiny(options: argparse.Namespace) -> None:
    from callsheet.workers.tiny import TINY, build_tiny

    folder = load().models_dir
    for name in options.names or TINY:
        print(build_tiny(name, folder))


def _verify(options: argparse.Namespace) -> int:
    import torch

    from callsheet.catalog import load_catalog
    from callsheet.workers.verify import Resumed, subject_of, verify

    settings = load()
    if settings.torch_threads:
        torch.set_num_threads(settings.torch_threads)
    catalog = load_catalog(settings.catalog, settings.models_dir)
    subject = subject_of(
        options.model, catalog, steps=options.steps, size=options.size, frames=options.frames
    )
    is_json = options.output == "json"

    def tell(step: Resumed) -> None:
        if not is_json:
            size_mb, save_ms = step.checkpoint_bytes / 1e6, step.save_s * 1e3
            said = "bit for bit" if step.exact else step.reason
            print(f"step {step.step:>3}: {said}  ({size_mb:.1f} MB, saved in {save_ms:.1f} ms)", flush=True)

    with _silent(not options.debug):  # the verdict says why
        verdict = verify(subject, tell)
    if is_json:
        print(json.dumps(asdict(verdict) | {"ok": verdict.ok}, indent=2))
    elif verdict.ok:
        print(f"{verdict.model}: every step resumes bit for bit")
    else:
        print(f"{verdict.model}: {verdict.reason or 'not every step resumes bit for bit'}")
    return 0 if verdict.ok else 1


@contextmanager
def _silent(wanted: bool) -> Iterator[None]:
    """No log, if wanted."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR if wanted else before)
    try:
        yield
    finally:
        logging.disable(before)


_COMMANDS: dict[str, Callable[[argparse.Namespace], int | None]] = {
    "run": _run,
    "gpus": _gpus,
    "build-tiny": _build_tiny,
    "verify": _verify,
}

if __name__ == "__main__":
    raise SystemExit(main())
