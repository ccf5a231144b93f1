"""``python -m callsheet.workers run | gpus | build-tiny``: what happens on a GPU node."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import asdict

from callsheet.errors import CallsheetError
from callsheet.settings import Settings, load


def main(args: Sequence[str] | None = None) -> int:
    """Run one command; answers its exit code."""
    options = _parser().parse_args(args)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)
    try:
        _COMMANDS[options.command](options)
    except CallsheetError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


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
    return parser


def _settings(options: argparse.Namespace) -> Settings:
    declared = tuple(options.gpus.replace(",", " ").split())
    return load().replace(gpus=declared) if declared else load()


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


_COMMANDS = {"run": _run, "gpus": _gpus, "build-tiny": _build_tiny}

if __name__ == "__main__":
    raise SystemExit(main())
