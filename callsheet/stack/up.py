"""``callsheet up``: the whole stack on one machine, until Ctrl-C."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from callsheet import wiring
from callsheet.app import app
from callsheet.errors import SettingsError
from callsheet.processes import Child, FileLock, Printer, Supervisor
from callsheet.settings import Settings, mask_url
from callsheet.stack.checks import Registered, connect_host, controller_answers, flower_answers
from callsheet.stack.embedded import EmbeddedServer, embedded_server
from callsheet.stack.plan import Checks, plan
from callsheet.stack.preflight import check_port, find_workers

NAME = "up"


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What ``callsheet up`` may be told beside the settings."""

    gpus: tuple[str, ...] = ()  # declared GPUs instead of the setting's
    flower: bool = True
    quiet: bool = False  # only up's own words, not the log of its parts
    ready_s: float = 120.0  # longest time until everything is ready


def run_up(settings: Settings, options: UpOptions = UpOptions()) -> int:
    """Start everything, say when it is ready, run until SIGINT or SIGTERM, stop everything; answers 0.

    Raises AlreadyRunning (a stack runs on this data folder), Refused (Flower's port is taken), SettingsError
    (no GPU, no server binary, a broker that only one process can see), CallsheetError (a part gave up or was
    not ready in time).
    """
    begun = time.monotonic()
    settings = settings.replace("--gpus", gpus=options.gpus) if options.gpus else settings
    held = f"Another stack runs on {settings.data_dir}"
    with FileLock(settings.data_dir / "up.lock", held=held) as lock:
        workers = find_workers(settings)
        flower = options.flower and settings.flower_port > 0
        if flower:
            check_port(settings)
        with _server(settings) as server:
            settings = settings.replace("the embedded server", broker_url=server.url) if server else settings
            children = _children(settings, options, workers, server, flower=flower)
            printer = Printer([NAME, *(child.name for child in children)], quiet=options.quiet)
            # The lock outlives a killed `up` for as long as any of its children.
            held_by_all = [replace(child, pass_fds=(*child.pass_fds, lock.fd)) for child in children]
            _supervise(held_by_all, printer, lambda: _ready_line(settings, workers, flower, begun))
    return 0


def needs_server(settings: Settings) -> bool:
    """Whether no broker was named, so that the embedded one is to be used. Raises SettingsError for memory://."""
    if settings.broker_url.startswith("memory:"):
        raise SettingsError(
            "broker_url = memory:// lives in one process and cannot carry a stack; nothing was started. "
            "Leave it out for the embedded server, or name a Redis"
        )
    if settings.storage_url.startswith("memory:"):
        raise SettingsError(
            "storage_url = memory:// would keep every film in the worker that made it; nothing was started. "
            "Leave it out for a folder, or name a bucket: s3://bucket/prefix"
        )
    return settings.origins["broker_url"].startswith("default")


@contextmanager
def _server(settings: Settings) -> Iterator[EmbeddedServer | None]:
    if not needs_server(settings):
        yield None
        return
    with embedded_server(settings.data_dir) as server:
        yield server


def _children(
    settings: Settings,
    options: UpOptions,
    workers: Sequence[str],
    server: EmbeddedServer | None,
    *,
    flower: bool,
) -> list[Child]:
    wiring.configure(settings)
    checks = Checks(
        workers=Registered(wiring.store, workers),
        controller=lambda node: controller_answers(app, node),
        flower=flower_answers(settings),
    )
    child = server.child() if server else None
    return plan(
        settings,
        host=socket.gethostname(),
        flower=flower,
        server=child,
        checks=checks,
        ready_s=options.ready_s,
    )


def _supervise(children: Sequence[Child], printer: Printer, ready_line: Callable[[], str]) -> None:
    printer.say(NAME, f"starting {', '.join(child.name for child in children)}; Ctrl-C stops them")
    Supervisor(children, name=NAME, printer=printer).run(on_ready=lambda: printer.say(NAME, ready_line()))
    printer.say(NAME, "stopped")


def _ready_line(settings: Settings, workers: Sequence[str], flower: bool, begun: float) -> str:
    url = f"http://{connect_host(settings.flower_host)}:{settings.flower_port}"
    parts = [
        f"ready in {time.monotonic() - begun:.1f} s",
        f"workers {', '.join(workers)}",
        f"broker {mask_url(settings.broker_url)}",
        *([f"Flower {url}"] if flower else []),
        f"films {mask_url(settings.storage_url)}",
        f"data {settings.data_dir}",
    ]
    return " · ".join(parts)
