"""What is to run on this machine, as plain data. Pure: nothing is started or looked at here."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from callsheet.app import CONTROL_QUEUE
from callsheet.processes import Child, Restart, RestartWhen
from callsheet.settings import Settings, to_env

WORKERS, FLOWER = "workers", "flower"
BEATS = ("beat-1", "beat-2")  # both tick; the store takes each tick once
CONTROLLERS = ("control-1", "control-2")
GRACE_S = 5.0  # for what holds no job
LAUNCHER_EXTRA_S = 5.0  # the launcher waits for its workers' grace, then needs a moment itself

#: Beats and controllers log three lines per tick, which would drown everything else; faults are still shown.
TICKS = re.compile(
    r"Sending due task \S+ \(callsheet\.tick\)|Task callsheet\.tick\[\S+\] (received|succeeded)"
)

#: The launcher restarts workers itself. If it fails within two minutes, starting it again will not help;
#: if somebody kills it, that will.
LAUNCHER_RESTART = Restart(RestartWhen.FAILED, quick_s=120.0, give_up_after=1)


@dataclass(frozen=True, slots=True)
class Checks:
    """How to know that a part is ready; what cannot be seen in its log."""

    workers: Callable[[], bool] | None = None
    controller: Callable[[str], Callable[[], bool]] | None = None  # of a Celery node name
    flower: Callable[[], bool] | None = None


def plan(
    settings: Settings,
    *,
    host: str,
    flower: bool = True,
    server: Child | None = None,
    checks: Checks = Checks(),
    ready_s: float = 120.0,
) -> list[Child]:
    """Every process of the stack but the GPU workers, which their launcher starts.

    With a ``server``, everything else starts once it is ready and stops before it does.
    """
    parts = [
        _launcher(settings, checks),
        *(_beat(name, settings) for name in BEATS),
        *(_controller(name, settings, host, checks) for name in CONTROLLERS),
        *([_flower(settings, checks)] if flower and settings.flower_port else []),
    ]
    env = to_env(settings)
    after = (server.name,) if server else ()
    finished = [replace(part, env={**env, **part.env}, after=after, ready_s=ready_s) for part in parts]
    return [server, *finished] if server else finished


def _python(*args: str) -> tuple[str, ...]:
    return (sys.executable, "-m", *args)


def _celery(*args: str) -> tuple[str, ...]:
    return _python("celery", "-A", "callsheet.app", *args)


def _launcher(settings: Settings, checks: Checks) -> Child:
    return Child(
        name=WORKERS,
        argv=_python("callsheet.workers", "run"),
        ready=checks.workers,
        restart=LAUNCHER_RESTART,
        grace_s=settings.shutdown_grace_s + LAUNCHER_EXTRA_S,
        nested=True,
    )


def _beat(name: str, settings: Settings) -> Child:
    """Each with its own schedule file. No pid file: a stale one would refuse the start."""
    schedule = settings.data_dir / f"{name}.db"
    return Child(
        name=name,
        argv=_celery("beat", "--schedule", str(schedule), "--loglevel", settings.log_level),
        ready=re.compile(r"beat: Starting"),
        mute=_mute(settings),
        grace_s=GRACE_S,
    )


def _controller(name: str, settings: Settings, host: str, checks: Checks) -> Child:
    """Solo: a tick is short, and a pool would only add a process."""
    node = f"{name}@{host}"
    worker = ("worker", "--pool", "solo", "--concurrency", "1", "--queues", CONTROL_QUEUE, "--hostname", node)
    return Child(
        name=name,
        argv=_celery(*worker, "--without-gossip", "--without-mingle", "--loglevel", settings.log_level),
        ready=checks.controller(node) if checks.controller else re.compile(rf"{re.escape(node)} ready"),
        mute=_mute(settings),
        grace_s=GRACE_S,
    )


def _mute(settings: Settings) -> re.Pattern[str] | None:
    return None if settings.log_level == "DEBUG" else TICKS


def _flower_env(settings: Settings) -> dict[str, str]:
    """Its buttons work where only this machine reaches it; elsewhere Flower wants a login first."""
    local = settings.flower_host in ("127.0.0.1", "localhost", "::1")
    return {"FLOWER_UNAUTHENTICATED_API": "true"} if local else {}


def _flower(settings: Settings, checks: Checks) -> Child:
    where = (f"--address={settings.flower_host}", f"--port={settings.flower_port}")
    return Child(
        name=FLOWER,
        argv=_celery("flower", *where),
        env=_flower_env(settings),
        ready=checks.flower,
        grace_s=GRACE_S,
    )
