"""What ``doctor`` looks at. Each probe stands alone: what one of them raises never stops the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from callsheet.cli import checks
from callsheet.cli.checks import Finding, Level
from callsheet.cli.extras import versions
from callsheet.cli.words import count, first_sentence
from callsheet.errors import CallsheetError, Unreachable
from callsheet.records.states import State
from callsheet.settings.urls import is_memory, parse
from callsheet.store.server import look

if TYPE_CHECKING:
    from callsheet.client import Client

DEVICES_S = 20.0  # longest time for NVML; a sick driver can hang for ever

Probe = Callable[["Client"], list[Finding]]


def examine(door: Client) -> list[Finding]:
    """All findings, in a fixed order. Probes run side by side: several outages cost the time of one."""
    with ThreadPoolExecutor(len(PROBES)) as threads:
        found = threads.map(lambda named: _guarded(door, *named), PROBES.items())
        return [finding for findings in found for finding in findings]


def _guarded(door: Client, name: str, probe: Probe) -> list[Finding]:
    try:
        return probe(door)
    except Unreachable as error:
        step = "start it, or correct its URL in the settings"
        return [Finding(name, Level.FAIL, first_sentence(str(error)), step, unreachable=True)]
    except CallsheetError as error:
        return [Finding(name, Level.FAIL, str(error))]
    except Exception as error:  # noqa: BLE001  a probe that breaks is a finding, too
        return [
            Finding(
                name, Level.FAIL, f"{type(error).__name__}: {error}", "report this as a fault of callsheet"
            )
        ]


def _settings(door: Client) -> list[Finding]:
    given = [name for name, origin in door.settings.origins.items() if not origin.startswith("default")]
    return [Finding("settings", Level.OK, f"{count(len(given), 'setting')} given, the others default")]


def _broker(door: Client) -> list[Finding]:
    """Whether it answers; its server, when the store lies on another."""
    found = [Finding("broker", Level.OK, door.ping_broker())]
    settings = door.settings
    if is_memory(settings.broker_url) or not _elsewhere(settings.broker_url, settings.store_url):
        return found
    return [*found, *checks.judge_broker(look(settings.broker_url, settings.connect_timeout_s))]


def _elsewhere(broker: str, store: str) -> bool:
    """Whether two URLs name two servers; the number of the database and the options do not matter."""
    if is_memory(store):
        return True
    one, other = parse(broker), parse(store)
    return (one.host, one.port, one.socket, one.sentinels) != (
        other.host,
        other.port,
        other.socket,
        other.sentinels,
    )


def _store(door: Client) -> list[Finding]:
    """The server, then what only the store knows."""
    url, limit_s = door.settings.store_url, door.settings.connect_timeout_s
    found = [] if is_memory(url) else checks.judge_server(look(url, limit_s))
    counts = door.counts()
    waiting = counts[State.PENDING] + counts[State.QUEUED]
    ticks = checks.judge_ticks(door.last_ticks(), now=door.now(), periods=door.tick_periods())
    return [*found, checks.judge_workers(door.gpus(), waiting), *ticks]


def _storage(door: Client) -> list[Finding]:
    probe = door.probe_storage()
    detail = f"{probe.url}: written, read and deleted in {probe.seconds * 1000:.0f} ms"
    if probe.creates_once:
        return [Finding("storage", Level.OK, detail)]
    step = "nothing to do: callsheet does not rely on it"
    return [Finding("storage", Level.WARN, f"{detail}; it ignores create-if-absent", step)]


def _data_dir(door: Client) -> list[Finding]:
    folder = door.settings.data_dir
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return [Finding("data folder", Level.OK, f"{folder}" + ("" if there == folder else ": not made yet"))]
    what = f"{folder}: {there} is {'not writable' if there.is_dir() else 'no folder'}"
    return [Finding("data folder", Level.FAIL, what, "correct its rights, or set data_dir to another folder")]


def _devices(_: Client) -> list[Finding]:
    """Through the worker's own program: this process loads no worker code."""
    command = [sys.executable, "-m", "callsheet.workers", "gpus", "-o", "json"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=DEVICES_S, check=False)
    except subprocess.TimeoutExpired:
        detail = f"the GPU driver did not answer within {DEVICES_S:g} s"
        return [Finding("GPUs here", Level.FAIL, detail, "run nvidia-smi; restart the driver or the machine")]
    if told.returncode:
        return [checks.judge_devices((), _last_error(told.stderr))]
    return [checks.judge_devices([device["name"] for device in json.loads(told.stdout)], "")]


def _last_error(stderr: str) -> str:
    return first_sentence(stderr.rpartition("Error: ")[2].strip()) or "the GPUs could not be listed"


def _packages(_: Client) -> list[Finding]:
    return [checks.judge_packages(versions())]


def _models(door: Client) -> list[Finding]:
    sources = {spec.name: door.catalog.resolve_source(spec) for spec in door.catalog}
    folders = {name: Path(source).is_dir() for name, source in sources.items() if Path(source).is_absolute()}
    return [checks.judge_models(folders, from_hub=len(sources) - len(folders))]


PROBES: dict[str, Probe] = {
    "settings": _settings,
    "broker": _broker,
    "store": _store,
    "storage": _storage,
    "data folder": _data_dir,
    "GPUs here": _devices,
    "worker packages": _packages,
    "models": _models,
}
