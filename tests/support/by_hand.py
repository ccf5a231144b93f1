"""What applications and workers do to jobs, done by hand: tests of the faces need no workers and no torch."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path
from typing import Any

from callsheet.artifacts.films import film_keys, store_film
from callsheet.artifacts.objects import Objects, open_objects
from callsheet.catalog import load_catalog
from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Checkpoint, Job, Outcome, Spent, Ticket
from callsheet.records.states import State
from callsheet.settings import Settings
from callsheet.store import open_store
from callsheet.store.protocol import Lease, Store
from callsheet.tasks.submit import Extras, Submitter


class Hand:
    """Submits, claims and ends jobs of one deployment."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store: Store = open_store(settings.store_url, retention_s=settings.retention_s)
        self._submitter = Submitter(self.store, load_catalog(), settings, publish=None)

    def submit(self, name: str = "", **request: Any) -> str:
        """Submit a job as an application does, under a chosen name if need be; answers its id."""
        arguments = {"prompt": "a cat", "model": "tiny-wan", **request}
        return self._submitter.submit(arguments, Extras(task_id=name)).job_id

    def claim(self, job_id: str, worker: str = "t4-0@here") -> Lease:
        """Release the job's queue and begin an attempt."""
        queue = self.store.get(job_id).queue
        self.store.set_quotas({queue: 100}, op=uuid.uuid4().hex)
        self.store.release(queue, op=uuid.uuid4().hex)
        return self.claim_ticket(job_id, worker)

    def claim_ticket(self, job_id: str, worker: str = "t4-0@here") -> Lease:
        """Begin an attempt with the ticket that is out."""
        job = self.store.get(job_id)
        ticket = Ticket(job.id, job.ticket, job.queue)
        lease = self.store.claim(ticket, worker=worker, token=uuid.uuid4().hex, lease_s=60)
        assert isinstance(lease, Lease), lease
        return lease

    def keep(self, lease: Lease, step: int, *, data: bytes = b"latents") -> Checkpoint:
        """Save a checkpoint of the running attempt, its object included."""
        name, fence = lease.job.id, (lease.job.id, lease.attempt, lease.token)
        build = "b1" if lease.job.strict else ""
        key = f"checkpoints/{name}/{lease.attempt}-{step}"
        kept = Checkpoint(step, key, hashlib.sha256(data).hexdigest(), len(data), build)
        self.objects.put(key, data)
        self.store.renew(*fence, lease_s=60, step=step, steps=8, phase="denoise")
        assert self.store.keep_checkpoint(*fence, kept, useful_s=1.5, op=uuid.uuid4().hex) is not None
        return kept

    def hand_back(self, lease: Lease, reason: str = "yields") -> None:
        """End the attempt as one that was told to yield."""
        fence, spent = (lease.job.id, lease.attempt, lease.token), Spent(useful=1.5)
        assert self.store.hand_back(*fence, reason=reason, spent=spent, op=uuid.uuid4().hex)

    def beat(self, name: str = "t4-0@here", **facts: Any) -> Gpu:
        """Register a GPU for a minute, as its worker does."""
        known = {
            "gpu_class": name.rpartition("@")[0].rpartition("-")[0],
            "vram_gib": 16,
            "uuid": "declared-0",
        }
        gpu = Gpu(**{"name": name, "host": "here", "index": 0, **known, **facts})
        self.store.beat_gpu(gpu, ttl_s=60)
        return gpu

    @property
    def objects(self) -> Objects:
        """Where films and checkpoints lie."""
        return open_objects(self.settings.storage_url)

    def succeed(self, job_id: str, film: bytes) -> Job:
        """Run the job to its end; ``film`` is what its mp4 holds."""
        return self.finish_well(self.claim(job_id), film)

    def finish_well(self, lease: Lease, film: bytes) -> Job:
        """End a running attempt with a film."""
        job_id = lease.job.id
        self.settings.data_dir.mkdir(parents=True, exist_ok=True)
        mp4 = Path(self.settings.data_dir, f"{job_id}.mp4")
        mp4.write_bytes(film)
        keys = film_keys(job_id, lease.attempt, lease.token)
        film_url, manifest_url = store_film(self.objects, keys, mp4, {"job": job_id})
        mp4.unlink()
        steps = lease.job.request.steps
        self.store.renew(
            job_id, lease.attempt, lease.token, lease_s=60, step=steps, steps=steps, phase="store"
        )
        return self._finish(
            lease,
            Outcome(
                State.SUCCEEDED, film=film_url, manifest=manifest_url, step=steps, spent=Spent(useful=2.5)
            ),
        )

    def fail(self, job_id: str, error: str) -> Job:
        """Run the job into an error."""
        return self._finish(self.claim(job_id), Outcome(State.FAILED, error_type="ModelError", error=error))

    def _finish(self, lease: Lease, outcome: Outcome) -> Job:
        assert self.store.finish(lease.job.id, lease.attempt, lease.token, outcome, op=uuid.uuid4().hex)
        return self.store.get(lease.job.id)
