"""The launcher: one Celery worker per GPU of this machine, kept running."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict

from callsheet.processes import Child, FileLock, Restart, RestartWhen, Supervisor
from callsheet.settings import Settings, to_env
from callsheet.settings.sources import GPU_VARIABLE
from callsheet.workers.devices import Device, Nvml, discover

#: A worker that ends with code 0 was told to leave (Flower, ``celery control shutdown``, a drain).
RESTART = Restart(RestartWhen.FAILED, first_s=1.0, quick_s=30.0, give_up_after=5)
NAME = "workers"


def run_workers(settings: Settings, *, nvml: Nvml | None = None) -> None:
    """Start a worker on each GPU and keep them running until SIGINT or SIGTERM.

    Raises SettingsError when there is no GPU, AlreadyRunning when one of them has a worker of this data
    folder, CallsheetError when every worker gave up.
    """
    devices = discover(settings.gpus, nvml=nvml, visible=os.environ.get("CUDA_VISIBLE_DEVICES"))
    host = socket.gethostname()
    with ExitStack() as stack:
        locks = [stack.enter_context(lock(settings, device, host)) for device in devices]
        children = plan(devices, settings, host=host, lock_fds=[lock.fd for lock in locks])
        Supervisor(children, name=NAME).run()


def plan(
    devices: Sequence[Device], settings: Settings, *, host: str, lock_fds: Sequence[int] = ()
) -> list[Child]:
    """The workers to run. Each inherits its GPU's lock, which lasts as long as any of its processes."""
    fds: list[tuple[int, ...]] = [(fd,) for fd in lock_fds] or [()] * len(devices)
    return [_child(device, settings, host, one) for device, one in zip(devices, fds, strict=True)]


def _child(device: Device, settings: Settings, host: str, fds: tuple[int, ...]) -> Child:
    return Child(
        name=device.name,
        argv=_argv(f"{device.name}@{host}", settings.log_level),
        env={**to_env(settings), **_gpu_env(device, host)},
        restart=RESTART,
        essential=False,
        grace_s=settings.shutdown_grace_s,
        pass_fds=fds,
    )


def _argv(worker: str, log_level: str) -> tuple[str, ...]:
    """Prefork with one child: weights stay, remote control works while busy, a crash ends the child only."""
    celery = (sys.executable, "-m", "celery", "-A", "callsheet.app", "worker")
    pool = ("--pool", "prefork", "--concurrency", "1")
    quiet = ("--without-gossip", "--without-mingle")  # a thousand workers need not greet each other
    return (*celery, *pool, "--hostname", worker, *quiet, "--loglevel", log_level)


def _gpu_env(device: Device, host: str) -> dict[str, str]:
    """The GPU by UUID, since CUDA and NVML number cards differently; a declared one pins nothing."""
    pin = {} if device.declared else {"CUDA_VISIBLE_DEVICES": device.uuid}
    return {GPU_VARIABLE: json.dumps(asdict(device.worker(host))), **pin}


def lock(settings: Settings, device: Device, host: str) -> FileLock:
    """Take one GPU's lock in this data folder (which hosts may share). Raises AlreadyRunning."""
    path = settings.data_dir / "workers" / f"{device.name}@{host}.lock"
    return FileLock(path, held=f"A worker for {device.name} of {settings.data_dir} runs already").acquire()
