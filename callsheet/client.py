"""The one door for faces (command line, HTTP, dashboard): jobs from submit to download, GPUs, soundness."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kombu.exceptions import OperationalError

from callsheet import wiring
from callsheet.app import app
from callsheet.artifacts.objects import Probe
from callsheet.beat.explain import Explanation, explain
from callsheet.beat.foresee import Foreseen, foresee
from callsheet.beat.look import View
from callsheet.beat.tick import CONTROL, ROUNDS, periods
from callsheet.catalog import Catalog
from callsheet.errors import CallsheetError, JobNotFound, Refused, Unreachable
from callsheet.records.gpus import Gpu, GpuOrder
from callsheet.records.jobs import AttemptRecord, Event, Job
from callsheet.records.states import State
from callsheet.routing.fleet import live_rules
from callsheet.settings import Settings, mask_url, urls
from callsheet.store.protocol import Page
from callsheet.tasks import gpu_orders, operators
from callsheet.tasks.face import POLL_S
from callsheet.tasks.generate import generate_video
from callsheet.tasks.job import VideoJob
from callsheet.tasks.outcome import value_of
from callsheet.tasks.publish import send_tick

TIER_PAGES = 20  # pages of the store that one listing of a tier reads at most


class Client:
    """A callsheet deployment, seen from outside.

    Every verb raises Unreachable when the store does not answer.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        """With ``settings`` the whole process uses them from now on."""
        if settings is not None:
            app.use(settings)

    @property
    def settings(self) -> Settings:
        """The settings in use."""
        return wiring.settings()

    @property
    def catalog(self) -> Catalog:
        """The models that can be served."""
        return wiring.catalog()

    def submit(self, **request: Any) -> VideoJob:
        """Submit one job: the arguments of ``generate_video.delay``.

        Raises RequestError (every fault at once), NoGpuFits, IdempotencyConflict.
        """
        if self.settings.task_always_eager:
            raise Refused(
                "the setting task_always_eager is on: jobs run in the calling process. Nothing was stored. "
                "Turn it off to submit jobs, or call generate_video.delay() in a program."
            )
        job = generate_video.delay(**request)
        assert isinstance(job, VideoJob)
        return job

    def job(self, job_id: str) -> VideoJob:
        """The handle of a job; nothing is looked up yet."""
        return generate_video.AsyncResult(job_id)

    def get(self, job_id: str) -> Job:
        """The record. Raises JobNotFound."""
        return wiring.store().get(job_id)

    def list_jobs(
        self,
        *,
        state: State | None = None,
        tier: str = "",
        tenant: str = "",
        limit: int = 50,
        cursor: str = "",
    ) -> Page:
        """One page of jobs, newest first. With a ``tier`` a page may be short though its cursor says more."""
        found: list[Job] = []
        for _ in range(TIER_PAGES):
            page = wiring.store().list_jobs(
                state=state, tenant=tenant, limit=limit - len(found), cursor=cursor
            )
            found += [job for job in page.jobs if tier in ("", job.tier)]
            cursor = page.cursor
            if len(found) == limit or not cursor:
                break
        return Page(tuple(found), cursor)

    def events(self, job_id: str) -> list[Event]:
        """The job's history, oldest first. Raises JobNotFound."""
        return wiring.store().events(job_id)

    def attempts(self, job_id: str) -> list[AttemptRecord]:
        """The job's attempts that have ended, oldest first. Raises JobNotFound."""
        return wiring.store().attempts(wiring.store().resolve(job_id))

    def cancel(
        self, job_id: str, *, reason: str = "cancelled by its owner", who: str = "", erase: bool = False
    ) -> State:
        """Cancel a job, queued or running; ``erase`` its prompt, film and checkpoints, too, however it ended.

        Answers the state it has now. Raises JobNotFound, StorageError (erased in the record only).
        """
        return self.job(job_id).cancel(operators.signed(reason, who), erase=erase)

    def requeue(
        self, job_id: str, *, from_checkpoint: bool | None = None, reason: str = "", who: str = ""
    ) -> State:
        """A failed or cancelled job is made again, and its ``get()`` waits anew.

        From its newest checkpoint where it has one; True: only from there, False: from step 0. Answers the
        state it has now. Raises JobNotFound, Refused.
        """
        signed = operators.signed(reason, who)
        return operators.requeue(wiring.store(), job_id, from_checkpoint=from_checkpoint, reason=signed)

    def preempt(self, job_id: str, *, reason: str = "", who: str = "") -> Job:
        """A running job saves a checkpoint, gives up its GPU at its next step and waits for another.

        Answers its record as it is told. Raises JobNotFound, Refused (it does not run).
        """
        return operators.preempt(wiring.store(), job_id, reason=operators.signed(reason, who))

    def wait_yielded(self, told: Job, *, timeout: float | None = None) -> Job:
        """Block until the attempt that :meth:`preempt` told has ended; answers the record then.

        Raises WaitTimeout, and Refused when the attempt cannot yield without losing work.
        """
        return operators.wait_yielded(wiring.store(), told, timeout)

    def watch(
        self, job_id: str, *, timeout: float | None = None, on_look: Callable[[Job], None] | None = None
    ) -> Job:
        """Block until the job has ended and answer its record, however it ended.

        Raises WaitTimeout, JobNotFound.
        """
        return self.job(job_id).wait_ended(timeout, on_look=on_look)

    def watch_all(
        self,
        job_ids: Sequence[str],
        *,
        timeout: float | None = None,
        on_look: Callable[[Job], None] | None = None,
    ) -> list[Job]:
        """Block until all have ended, or for ``timeout`` seconds; answers the records as they are then.

        Raises JobNotFound.
        """
        ends = None if timeout is None else time.monotonic() + timeout
        ids = [self.get(job_id).id for job_id in job_ids]
        while True:
            jobs = self._records(ids)
            for job in jobs if on_look else ():
                on_look(job)  # type: ignore[misc]
            left = POLL_S if ends is None else min(POLL_S, ends - time.monotonic())
            if left <= 0 or all(job.ended for job in jobs):
                return jobs
            time.sleep(left)

    def _records(self, job_ids: Sequence[str]) -> list[Job]:
        found = wiring.store().get_many(job_ids)
        gone = [job_id for job_id, job in zip(job_ids, found, strict=True) if job is None]
        if gone:
            raise JobNotFound(
                f"no record of {', '.join(gone)} any more: past its retention, or the store was emptied"
            )
        return [job for job in found if job is not None]

    def download(self, job_id: str, path: str | Path) -> Path:
        """Write the film to a file or into a folder. Raises Refused, JobFailed, StorageError, JobNotFound."""
        return self.job(job_id).download(path)

    def error(self, job: Job) -> CallsheetError | None:
        """The error of an ended job; None when it succeeded."""
        value = value_of(job)
        return value if isinstance(value, CallsheetError) else None

    def gpus(self) -> list[Gpu]:
        """GPUs whose worker is alive."""
        return wiring.store().gpus()

    def running(self) -> list[Job]:
        """Jobs that run now."""
        return wiring.store().running()

    def gpu_orders(self) -> dict[str, GpuOrder]:
        """What operators said about GPUs, by name; their workers need not be alive."""
        return wiring.store().gpu_orders()

    def find_gpu(self, name: str, *, force: bool = False) -> str:
        """The full name of a GPU that is alive or has an order, by its part before the ``@``, too.

        ``force``: a full name may be unknown. Raises GpuNotFound, RequestError (several are called so).
        """
        return gpu_orders.find_gpu(wiring.store(), name, force=force)

    def cordon(self, gpu: str, *, why: str, who: str) -> None:
        """The GPU (full name) takes nothing new; its job goes on. Raises RequestError without a reason."""
        gpu_orders.cordon(wiring.store(), gpu, why=why, who=who)

    def drain(self, gpu: str, *, why: str, who: str, within_s: float | None = None) -> None:
        """As :meth:`cordon`, and its job is handed back with a checkpoint after ``within_s`` seconds.

        0 = at its next step; None = it may end by itself. Replaces the order before.
        """
        gpu_orders.drain(wiring.store(), gpu, why=why, who=who, within_s=within_s)

    def uncordon(self, gpu: str) -> bool:
        """Lift the order about a GPU (full name). False: there was none."""
        return gpu_orders.uncordon(wiring.store(), gpu)

    def wait_idle(self, gpus: Sequence[str], *, timeout: float | None = None) -> None:
        """Block until none of these GPUs (full names) has a job. Raises WaitTimeout."""
        gpu_orders.wait_idle(wiring.store(), gpus, timeout)

    def counts(self) -> dict[State, int]:
        """Jobs per state."""
        return wiring.store().counts()

    def backlog(self) -> dict[str, int]:
        """Waiting jobs per queue."""
        return wiring.store().backlog()

    def backlog_jobs(self, queue: str, limit: int = 100) -> list[str]:
        """Ids of the jobs at the front of one backlog, in order."""
        return wiring.store().backlog_jobs(queue, limit)

    # -- what the controllers do, and why

    def explain(self, job_id: str) -> Explanation:
        """Where a job is, what stands before it, what was decided about it. Raises JobNotFound."""
        return explain(self._view(), job_id)

    def foresee(self) -> Foreseen:
        """What a tick would do now, and why; nothing is changed."""
        return foresee(self._view())

    def ask_tick(self) -> None:
        """The controllers look now, at most once in each tick's period. Raises Unreachable."""
        self.ping_broker()
        send_tick(CONTROL)

    def _view(self) -> View:
        return View(wiring.store(), live_rules(self.catalog, self.settings))

    def now(self) -> float:
        """The store's time, seconds since the epoch."""
        return wiring.store().now()

    # -- is it sound? ----------------------------------------------------------------------------------------

    def ping_store(self) -> dict[str, Any]:
        """Facts about the store's server: version, appendonly, maxmemory_policy, used_memory."""
        return wiring.store().ping()

    def last_ticks(self) -> dict[str, dict[str, Any]]:
        """Report of the last tick of each round of controllers: at (store time), counts, faults.

        Empty after three minutes without one.
        """
        return {name: wiring.store().last_report(name) for name in ROUNDS}

    def tick_periods(self) -> dict[str, float]:
        """How often each round runs, seconds."""
        return periods(self.settings)

    def ping_broker(self) -> str:
        """Connect to the broker; answers its URL without password."""
        timeout_s, url = self.settings.connect_timeout_s, mask_url(self.settings.broker_url)
        with app.connection_for_write() as connection:
            try:
                connection.ensure_connection(max_retries=1, interval_start=0, timeout=timeout_s)
            except (OperationalError, OSError) as fault:
                said = urls.untrusted(fault) or fault
                raise Unreachable(
                    f"the broker at {url} does not answer: {said}. Start it (`callsheet up` runs "
                    "one of its own), or correct broker_url in the settings."
                ) from fault
        return url

    def probe_storage(self) -> Probe:
        """Write, read and delete a small object. Raises StorageError."""
        return wiring.objects().probe()
