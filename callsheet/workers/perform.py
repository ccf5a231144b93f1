"""One attempt: claim, load, resume, render, encode, store, finish; stopped within a step by an order."""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from callsheet import wiring
from callsheet.artifacts.checkpoints import drop_all
from callsheet.artifacts.films import FilmKeys, film_keys, store_film
from callsheet.artifacts.objects import Objects
from callsheet.catalog import Catalog
from callsheet.errors import CallsheetError, StorageError
from callsheet.records.jobs import Outcome, Ticket
from callsheet.records.models import ModelSpec
from callsheet.records.states import State
from callsheet.routing.fit import GIB_PER_GB, default_need_gib
from callsheet.settings import Settings
from callsheet.store.protocol import ClaimRefused, Lease, Store
from callsheet.workers.beginning import Beginning, find_beginning
from callsheet.workers.clocks import Clocks
from callsheet.workers.encode import encode_mp4
from callsheet.workers.frames import Frames, frames_sha256
from callsheet.workers.insist import insist, persist
from callsheet.workers.journal import Journal, StoreJournal
from callsheet.workers.keeping import Keeping
from callsheet.workers.manifest import Attempt, build_manifest
from callsheet.workers.pipelines import LoadedPipeline, load_pipeline
from callsheet.workers.render import render
from callsheet.workers.replay import NotReplayable, belonging, build_id
from callsheet.workers.resident import ResidentModels
from callsheet.workers.running import RunningAttempt, Stopped
from callsheet.workers.saver import SaveCosts, Saver

log = logging.getLogger(__name__)

#: Orders after which somebody else goes on with the job, and what its history says of them.
HANDED_BACK = {
    "yield": "yielded its GPU",
    "drain": "its GPU is drained",
    "leave": "its worker ends",
    "storage": "its checkpoint cannot be read",
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
        self._build = build_id()
        self._save_costs = SaveCosts({})

    def perform(self, ticket: Ticket) -> State | str:
        """Run the attempt that the ticket permits. Answers the job's state, or why the ticket was refused."""
        claim = insist(  # a claim whose reply was lost holds the job: nobody else would run it
            lambda token: self._store.claim(
                ticket,
                worker=self._worker,
                token=token,
                lease_s=self._settings.lease_s,
                build=self._build,
            )
        )
        if isinstance(claim, ClaimRefused):
            return claim.reason
        self._journal.begin(claim)
        try:
            return self._run(claim)
        finally:
            self._journal.end(self._resident.names)

    def _run(self, lease: Lease) -> State | str:
        """The attempt and its end. A storage that is away is no fault of a job with kept steps: it waits."""
        clocks, keys = Clocks(), film_keys(lease.job.id, lease.attempt, lease.token)
        try:
            outcome = self._produce(lease, clocks, keys)
        except Stopped as stop:
            return self._stop(lease, stop, clocks)
        except CallsheetError as fault:
            log.warning("job %s failed: %s", lease.job.id, fault)
            outcome = _failure(fault, clocks)
        except Exception as fault:
            log.exception("job %s failed on an internal error", lease.job.id)
            outcome = _failure(fault, clocks)
        wrote = insist(
            lambda op: self._store.finish(lease.job.id, lease.attempt, lease.token, outcome, op=op)
        )
        if not wrote:
            self._drop_film(keys)
            return "fenced"
        if outcome.state is State.SUCCEEDED:
            self._drop_checkpoints(lease.job.id)
        return outcome.state

    def _produce(self, lease: Lease, clocks: Clocks, keys: FilmKeys) -> Outcome:
        request = lease.job.request
        pipeline = self._load(self._catalog.get(request.model), lease.job.need_gib, clocks)
        attempt = self._attempt(lease, pipeline, clocks)
        try:
            frames = self._render(lease, pipeline, attempt)
            attempt.on_phase("store")
            film, manifest, digest = self._keep_film(lease, pipeline, frames, clocks, keys)
        except Stopped as stop:
            stop.kept_s = attempt.keeping.kept_useful_s
            raise
        finally:
            attempt.saver.close()
        return Outcome(
            state=State.SUCCEEDED,
            film=film,
            manifest=manifest,
            frames_sha256=digest,
            step=request.steps,
            spent=clocks.spent(clocks.useful_s()),
        )

    def _attempt(self, lease: Lease, pipeline: LoadedPipeline, clocks: Clocks) -> RunningAttempt:
        extra = asdict(belonging(pipeline, lease.job.request))
        keeping = Keeping(lease, self._store, self._objects, extra, self._build)
        saver = Saver(
            keeping.save,
            model=lease.job.request.model,
            costs=self._save_costs,
            mean_s_between_losses=lease.mean_s_between_losses,
            fixed_interval_s=self._settings.checkpoint_interval_s,
        )
        return RunningAttempt(lease, self._store, self._journal, clocks, keeping, saver)

    def _render(self, lease: Lease, pipeline: LoadedPipeline, attempt: RunningAttempt) -> Frames:
        """From where the job was, or from step 0 when that cannot be."""
        beginning = self._begin(lease, pipeline)
        attempt.resumed = beginning.snapshot is not None
        arguments: dict[str, Any] = {"on_step": attempt.on_step, "on_phase": attempt.on_phase}
        try:
            return render(pipeline, lease.job.request, resume=beginning.snapshot, **arguments)
        except NotReplayable as refusal:
            if beginning.snapshot is None:
                raise
            said = str(refusal)
        self._say_beginning(lease, Beginning(reason=said))
        attempt.resumed = False
        return render(pipeline, lease.job.request, **arguments)

    def _begin(self, lease: Lease, pipeline: LoadedPipeline) -> Beginning:
        """Where it begins, as the record says from now on."""
        job = lease.job
        if job.checkpoint is None:
            if job.attempt > 1 and job.step:
                self._say_beginning(lease, Beginning(reason="no step of it was kept"))
            return Beginning()
        self._journal.phase("restore")
        try:
            beginning = find_beginning(
                job,
                belonging(pipeline, job.request),
                self._objects,
                patience_s=self._settings.storage_patience_s,
            )
        except StorageError as fault:
            raise Stopped("storage", str(fault)) from None
        self._say_beginning(lease, beginning)
        self._journal.step(beginning.step, job.steps)
        return beginning

    def _say_beginning(self, lease: Lease, beginning: Beginning) -> None:
        owned = insist(
            lambda op: self._store.start_from(
                lease.job.id,
                lease.attempt,
                lease.token,
                step=beginning.step,
                exact=beginning.exact,
                reason=beginning.reason,
                op=op,
            )
        )
        if not owned:
            raise Stopped("fenced")

    def preload(self, model: str) -> None:
        """Load weights with no job, for jobs to come. Raises what loading raises."""
        try:
            spec = self._catalog.get(model)
            self._get(spec, default_need_gib(spec))
        finally:
            self._journal.end(self._resident.names)

    def _load(self, spec: ModelSpec, need_gib: float, clocks: Clocks) -> LoadedPipeline:
        self._journal.phase("load")
        began = time.monotonic()
        try:
            return self._get(spec, need_gib)
        finally:
            clocks.loading_s = time.monotonic() - began
            self._journal.loaded(clocks.loading_s, self._resident.names)

    def _get(self, spec: ModelSpec, need_gib: float) -> LoadedPipeline:
        weights_gib = spec.weights_gb * GIB_PER_GB
        return self._resident.get(
            spec.name, lambda: self._load_now(spec), weights_gib=weights_gib, need_gib=need_gib
        )

    def _load_now(self, spec: ModelSpec) -> LoadedPipeline:
        source = str(self._catalog.resolve_source(spec))
        return load_pipeline(source, revision=spec.revision, dtype=spec.dtype, tiling=spec.tiling)

    def _keep_film(
        self, lease: Lease, pipeline: LoadedPipeline, frames: Frames, clocks: Clocks, keys: FilmKeys
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
            film, manifest_url = persist(
                lambda: store_film(self._objects(), keys, mp4, manifest), self._settings.storage_patience_s
            )
        return film, manifest_url, digest

    def _stop(self, lease: Lease, stop: Stopped, clocks: Clocks) -> State | str:
        """End an attempt that was told to. A cancelled job has ended in the record already."""
        if stop.order not in HANDED_BACK:
            log.info("job %s stopped: %s", lease.job.id, stop.order)
            return State.CANCELLED if stop.order == "cancel" else stop.order
        why = HANDED_BACK[stop.order] + (self._drained_by() if stop.order == "drain" else "")
        handed = insist(
            lambda op: self._store.hand_back(
                lease.job.id,
                lease.attempt,
                lease.token,
                reason=f"{why}, {stop.reason}",
                spent=clocks.spent(stop.kept_s),
                preempted=stop.order == "yield",
                op=op,
            )
        )
        return State.PENDING if handed else "fenced"

    def _drained_by(self) -> str:
        """Why and by whom, for the job's history: the order itself is gone once it is lifted."""
        order = insist(lambda _op: self._store.gpu_order(self._worker))
        return f" ({order.why}, by {order.who})" if order else ""

    def _drop_film(self, keys: FilmKeys) -> None:
        """A ghost leaves nothing behind."""
        for key in (keys.film, keys.manifest):
            with suppress(StorageError):
                self._objects().delete(key)

    def _drop_checkpoints(self, job_id: str) -> None:
        """Beside the next job; what it misses, the janitor sweeps."""
        threading.Thread(target=_drop_quietly, args=(self._objects(), job_id), daemon=True).start()


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


def _drop_quietly(objects: Objects, job_id: str) -> None:
    try:
        drop_all(objects, job_id)
    except StorageError as fault:
        log.info("checkpoints of job %s stay for the janitor: %s", job_id, fault)


def _failure(fault: Exception, clocks: Clocks) -> Outcome:
    known = isinstance(fault, CallsheetError)
    message = (
        str(fault) if known else f"internal error {type(fault).__name__}: {fault}; the worker's log has more"
    )
    return Outcome(
        state=State.FAILED,
        error_type=type(fault).__name__,
        error=message,
        spent=clocks.spent(0.0),
    )
