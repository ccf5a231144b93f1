"""One attempt: claim, load, render, encode, store, finish; stopped within a step when an order says so."""

from __future__ import annotations

import logging
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch

from callsheet import wiring
from callsheet.artifacts.films import film_keys, store_film
from callsheet.artifacts.objects import Objects
from callsheet.catalog import Catalog
from callsheet.errors import CallsheetError, Unreachable
from callsheet.records.jobs import Outcome, Ticket
from callsheet.records.models import ModelSpec
from callsheet.records.states import State
from callsheet.settings import Settings
from callsheet.store.protocol import ClaimRefused, Lease, Store
from callsheet.workers.encode import encode_mp4
from callsheet.workers.frames import Frames, frames_sha256
from callsheet.workers.journal import Journal, StoreJournal
from callsheet.workers.manifest import Attempt, build_manifest
from callsheet.workers.pipelines import LoadedPipeline, load_pipeline
from callsheet.workers.render import render
from callsheet.workers.resident import ResidentModels

log = logging.getLogger(__name__)
T = TypeVar("T")

AWAY_S = 900.0  # how long a finished film waits for a store that is away
PAUSE_S = 0.5  # between two tries


class Stopped(Exception):
    """An order ended the attempt at a step: cancel, yield or fenced."""

    def __init__(self, order: str) -> None:
        super().__init__(order)
        self.order = order


@dataclass
class Clocks:
    """Where the attempt's time went, by the monotonic clock, in seconds."""

    claimed: float = field(default_factory=time.monotonic)
    first_step: float = 0.0  # when the denoiser was first called
    loading_s: float = 0.0

    def ran_s(self) -> float:
        """Seconds since the claim."""
        return time.monotonic() - self.claimed

    def timings(self) -> dict[str, float]:
        """For the manifest."""
        return {
            "load_s": round(self.loading_s, 6),
            "claim_to_first_step_s": round(self.first_step - self.claimed, 6),
            "run_s": round(self.ran_s(), 6),
        }


class Performer:
    """Runs attempts, one at a time, on the GPU that this process owns."""

    def __init__(
        self,
        *,
        store: Store,
        objects: Callable[[], Objects],
        catalog: Catalog,
        settings: Settings,
        resident: ResidentModels,
        journal: Journal,
        worker: str,
    ) -> None:
        self._store, self._objects, self._catalog = store, objects, catalog
        self._settings, self._resident, self._journal, self._worker = settings, resident, journal, worker

    def perform(self, ticket: Ticket) -> State | str:
        """Run the attempt that the ticket permits. Answers the job's state, or why the ticket was refused."""
        claim = self._store.claim(
            ticket, worker=self._worker, token=uuid.uuid4().hex, lease_s=self._settings.lease_s
        )
        if isinstance(claim, ClaimRefused):
            return claim.reason
        self._journal.begin(claim)
        try:
            return self._run(claim)
        finally:
            self._journal.end(self._resident.names)

    def _run(self, lease: Lease) -> State | str:
        clocks = Clocks()
        try:
            outcome = self._produce(lease, clocks)
        except Stopped as stop:
            return self._stop(lease, stop.order, clocks)
        except CallsheetError as fault:
            log.warning("job %s failed: %s", lease.job.id, fault)
            outcome = _failure(fault, clocks)
        except Exception as fault:
            log.exception("job %s failed on an internal error", lease.job.id)
            outcome = _failure(fault, clocks)
        wrote = self._insist(
            lambda op: self._store.finish(lease.job.id, lease.attempt, lease.token, outcome, op=op)
        )
        return outcome.state if wrote else "fenced"

    def _produce(self, lease: Lease, clocks: Clocks) -> Outcome:
        request = lease.job.request
        pipeline = self._load(self._catalog.get(request.model), clocks)
        frames = render(
            pipeline,
            request,
            on_step=self._on_step,
            on_phase=lambda name: self._on_phase(name, clocks),
        )
        self._journal.phase("store")
        film, manifest, digest = self._keep(lease, pipeline, frames, clocks)
        return Outcome(
            state=State.SUCCEEDED,
            film=film,
            manifest=manifest,
            frames_sha256=digest,
            step=request.steps,
            gpu_s_useful=clocks.ran_s() - clocks.loading_s,
            gpu_s_loading=clocks.loading_s,
        )

    def _load(self, spec: ModelSpec, clocks: Clocks) -> LoadedPipeline:
        self._journal.phase("load")
        began = time.monotonic()
        try:
            return self._resident.get(spec.name, lambda: self._load_now(spec))
        finally:
            clocks.loading_s = time.monotonic() - began

    def _load_now(self, spec: ModelSpec) -> LoadedPipeline:
        source = str(self._catalog.resolve_source(spec))
        return load_pipeline(source, revision=spec.revision, dtype=spec.dtype, tiling=spec.tiling)

    def _on_step(self, done: int, total: int, _take: Callable[[], Any]) -> None:
        self._journal.step(done, total)
        self._obey()

    def _on_phase(self, name: str, clocks: Clocks) -> None:
        if name == "denoise":
            clocks.first_step = time.monotonic()
        self._journal.phase(name)
        self._obey()

    def _obey(self) -> None:
        order = self._journal.order()
        if order:
            raise Stopped(order)

    def _keep(
        self, lease: Lease, pipeline: LoadedPipeline, frames: Frames, clocks: Clocks
    ) -> tuple[str, str, str]:
        """Encode and store the film and its manifest. Answers both URLs and the hash of the frames."""
        job, digest = lease.job, frames_sha256(frames)
        with tempfile.TemporaryDirectory(prefix="callsheet-") as folder:
            mp4 = Path(folder) / "film.mp4"
            encoding = encode_mp4(
                frames,
                job.request.fps,
                mp4,
                crf=self._settings.encode_crf,
                preset=self._settings.encode_preset,
            )
            attempt = Attempt(job.id, lease.attempt, self._worker, job.claimed_at, time.time())
            manifest: dict[str, Any] = build_manifest(
                job.request, pipeline, encoding, attempt, frames_sha256=digest
            )
            manifest["timings"] = clocks.timings()
            keys = film_keys(job.id, lease.attempt, lease.token)
            film, manifest_url = store_film(self._objects(), keys, mp4, manifest)
        return film, manifest_url, digest

    def _stop(self, lease: Lease, order: str, clocks: Clocks) -> State | str:
        """End an attempt that was told to. A cancelled job has ended in the record already."""
        if order != "yield":
            log.info("job %s stopped: %s", lease.job.id, order)
            return State.CANCELLED if order == "cancel" else order
        handed = self._insist(
            lambda op: self._store.hand_back(
                lease.job.id,
                lease.attempt,
                lease.token,
                reason="told to yield",
                gpu_s_wasted=clocks.ran_s(),
                op=op,
            )
        )
        return State.PENDING if handed else "fenced"

    def _insist(self, verb: Callable[[str], T]) -> T:
        """Repeat one verb, under one op, until the store answers: what was computed is not thrown away."""
        op, ends = uuid.uuid4().hex, time.monotonic() + AWAY_S
        while True:
            try:
                return verb(op)
            except Unreachable as fault:
                if time.monotonic() > ends:
                    raise
                log.warning("%s; tried again", fault)
                time.sleep(PAUSE_S)


def perform_here(ticket: Ticket, store: Store) -> State | str:
    """Run one attempt in the calling process, on the process's own settings."""
    settings = wiring.settings()
    set_threads(settings)
    performer = Performer(
        store=store,
        objects=wiring.objects,
        catalog=wiring.catalog(),
        settings=settings,
        resident=wiring.once("resident", lambda: ResidentModels(settings.max_resident_models)),
        journal=StoreJournal(store, settings.lease_s),
        worker="in-process",
    )
    return performer.perform(ticket)


def set_threads(settings: Settings) -> None:
    """CPU threads of torch, as the settings say."""
    if settings.torch_threads:
        torch.set_num_threads(settings.torch_threads)


def _failure(fault: Exception, clocks: Clocks) -> Outcome:
    known = isinstance(fault, CallsheetError)
    message = (
        str(fault) if known else f"internal error {type(fault).__name__}: {fault}; the worker's log has more"
    )
    return Outcome(
        state=State.FAILED,
        error_type=type(fault).__name__,
        error=message,
        gpu_s_wasted=clocks.ran_s() - clocks.loading_s,
        gpu_s_loading=clocks.loading_s,
    )
