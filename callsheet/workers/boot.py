"""What turns a Celery worker into a GPU worker: its queues, its keeper, its performer.

Celery imports this through ``include``, before it builds the worker. Nothing happens in a process whose
environment names no GPU: producers, beats and controller workers.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
from dataclasses import replace
from typing import Any

from celery.signals import (
    celeryd_after_setup,
    worker_process_init,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)

from callsheet import wiring
from callsheet.app import app
from callsheet.errors import SettingsError
from callsheet.records.gpus import Gpu
from callsheet.settings.sources import GPU_VARIABLE
from callsheet.tasks.panel import set_flag
from callsheet.tasks.publish import release
from callsheet.tasks.ticket import Performer, set_performer
from callsheet.tasks.weights import order_weights
from callsheet.workers.keeper import Keeper, Pace
from callsheet.workers.keeper_thread import KeeperThread
from callsheet.workers.slate import Running, Slate
from callsheet.workers.subscriber import Subscriber, subscribe_step

log = logging.getLogger(__name__)


def read_gpu(text: str) -> Gpu:
    """The GPU that the launcher handed over. Raises SettingsError."""
    try:
        data = json.loads(text)
        return Gpu(**{**data, "queues": (), "resident": ()})
    except (ValueError, TypeError) as fault:
        raise SettingsError(
            f"{GPU_VARIABLE} names no GPU ({fault!r}); it is set by `callsheet worker`, which starts one "
            "Celery worker for each GPU: start that instead of Celery itself"
        ) from fault


class GpuWorker:
    """The parts that one GPU's Celery worker is made of, tied to Celery's signals."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.slate = Slate()  # before the pool forks its child
        self._thread: KeeperThread | None = None
        self._keeper: Keeper | None = None
        self.subscriber: Subscriber | None = None

    def join(self) -> None:
        """Hook into Celery. Signals hold only weak references, so the caller keeps this object."""
        celeryd_after_setup.connect(self.after_setup)
        worker_process_init.connect(self.warm)
        worker_ready.connect(self.ready)
        worker_shutting_down.connect(self.shutting_down)
        worker_shutdown.connect(self.shutdown)
        app.steps["consumer"].add(subscribe_step(self))

    def after_setup(self, sender: str, **_: Any) -> None:
        """The worker knows its name; its pool is not forked yet."""
        settings = wiring.settings()
        gpu = replace(read_gpu(self._text), name=sender)
        self.subscriber = Subscriber(gpu, wiring.catalog(), settings)
        app.amqp.queues.select([])  # nothing until the child is warm
        self._keeper = Keeper(
            wiring.store(),
            self.slate,
            gpu,
            subscriber=self.subscriber,
            pace=Pace(
                lease_s=settings.lease_s,
                renew_s=settings.renew_s,
                yield_grace_s=settings.yield_grace_s,
                stuck_s=settings.stuck_s,
                max_crashes=settings.max_crashes,
            ),
            refill=lambda queue: release(wiring.store(), queue),
            load=lambda lane: order_weights(gpu.name, lane),
        )
        set_performer(lambda: self._attendant(gpu))
        set_flag(self._keeper.tell)

    def warm(self, **_: Any) -> None:
        """In the child, at its start: import torch and diffusers now, not in the first job, then say so."""
        attend = importlib.import_module("callsheet.workers.attend")
        self.slate.write_running(Running(pid=os.getpid(), build=attend.build_id()))

    def ready(self, **_: Any) -> None:
        """The worker consumes: say so, and keep its leases from now on."""
        assert self._keeper is not None
        self._thread = KeeperThread(self._keeper)
        self._thread.start()

    def shutting_down(self, **_: Any) -> None:
        """SIGTERM: the running job is handed back at its next step."""
        if self._keeper is not None:
            self._keeper.leave_soon()

    def shutdown(self, **_: Any) -> None:
        """The pool has ended."""
        if self._thread is not None:
            self._thread.stop()

    def _attendant(self, gpu: Gpu) -> Performer:
        module = importlib.import_module("callsheet.workers.attend")  # imports torch: in the child only
        attendant: Performer = module.Attendant(self.slate, gpu)
        return attendant


_worker: GpuWorker | None = None
if os.environ.get(GPU_VARIABLE):
    _worker = GpuWorker(os.environ[GPU_VARIABLE])
    _worker.join()
