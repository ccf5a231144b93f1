"""What background saves cost a run that nothing disturbs: the same film with them and without, in pairs.

Performers as workers have them, here in this process: real steps, records in a Valkey with an append-only
file, checkpoints in a folder. The fleet is one that has lost a worker in every GPU-hour, since in one that
lost none no run of a minute would be saved at all.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.preemption_figures import Pair, Run
from benchmarks.preemption_stage import LEAST_STEP_CPU_S, MODEL, SHAPES, settings_of
from callsheet import wiring
from callsheet.errors import JobFailed
from callsheet.records.jobs import Job, Ticket
from callsheet.records.states import State
from callsheet.settings import Settings
from callsheet.store.protocol import Lease, Store
from callsheet.store.redis_store import RedisStore
from callsheet.workers.journal import StoreJournal
from callsheet.workers.perform import Performer, set_threads
from callsheet.workers.resident import ResidentModels
from tests.support.jobs import QUEUE, new_job
from tests.support.valkey import Valkey

RUN_S = 60.0  # shortest run that counts
SPARE = 1.15  # steps take longer in one run than in the next
NO_SAVES_S = 86_400.0  # between two saves
LOSSES = 23  # workers lost in the fleet's first 86,400 GPU-seconds, which the store takes for granted: 1/h


class Counting(RedisStore):
    """A store that counts the checkpoints it is told of."""

    kept = 0

    def keep_checkpoint(self, *args: Any, **kwargs: Any) -> Any:
        """As RedisStore's."""
        self.kept += 1
        return super().keep_checkpoint(*args, **kwargs)


class Timed(StoreJournal):
    """A journal that notes what CPU time the process has used when steps end."""

    def __init__(self, store: Store, lease_s: float) -> None:
        super().__init__(store, lease_s)
        self.used_s: list[float] = []

    def begin(self, lease: Lease) -> None:
        """An attempt begins."""
        self.used_s = []
        super().begin(lease)

    def step(self, done: int, total: int) -> None:
        """A step has ended."""
        self.used_s.append(time.process_time())
        super().step(done, total)

    @property
    def step_cpu_s(self) -> float:
        """CPU-seconds of the quickest step but the first: no step of one thread takes less wall time."""
        return min(b - a for a, b in pairwise(self.used_s))


class Maker:
    """Makes films in this process, with saves each ``interval_s`` (0 = as computed)."""

    def __init__(self, store: Counting, settings: Settings, interval_s: float) -> None:
        self._store, self.journal = store, Timed(store, settings.lease_s)
        self._performer = Performer(
            store=store,
            objects=wiring.objects,
            catalog=wiring.catalog(),
            settings=settings.replace(checkpoint_interval_s=interval_s),
            resident=ResidentModels(1),
            journal=self.journal,
            worker="in-process",
        )

    def make(self, film: dict[str, Any]) -> Run:
        """One film. Raises JobFailed."""
        ticket = _ticket(self._store, film)
        cpu_s, kept = time.process_time(), self._store.kept
        state = self._performer.perform(ticket)
        job: Job = self._store.get(ticket.job_id)
        if state is not State.SUCCEEDED:
            raise JobFailed(f"job {job.id} of the benchmark is {state}: {job.error}")
        return Run(job.gpu_s_useful, time.process_time() - cpu_s, self._store.kept - kept)


def measure(folder: Path, pairs: int, say: Callable[[str], None]) -> list[Pair]:
    """``pairs`` times the film with saves as computed and the film without, first the one, then the other."""
    with Valkey(aof=True) as valkey:
        settings = settings_of(folder, valkey.url)
        wiring.configure(settings)
        set_threads(settings)
        store = Counting(valkey.client(), retention_s=settings.retention_s)
        _lose_workers(store)
        saving, plain = Maker(store, settings, 0.0), Maker(store, settings, NO_SAVES_S)
        film = _film(plain)
        saving.make({**film, "steps": 3})
        film = _long_enough(plain, film)
        say(f"overhead: {pairs} pairs of {film['steps']} steps, {2 * pairs * RUN_S * SPARE / 60:.0f} min")
        made = []
        for pair in _pairs(saving, plain, film, pairs):
            made.append(pair)
            say(f"overhead: {pair.overhead:.2%} of GPU time, {pair.cpu_overhead:.2%} of CPU time")
        store.close()
    return made


def _pairs(saving: Maker, plain: Maker, film: dict[str, Any], pairs: int) -> Iterator[Pair]:
    for number in range(pairs):
        if number % 2:
            without, with_saves = plain.make(film), saving.make(film)
        else:
            with_saves, without = saving.make(film), plain.make(film)
        yield Pair(with_saves, without)


def _film(maker: Maker) -> dict[str, Any]:
    """A film of at least RUN_S with steps of at least LEAST_STEP_CPU_S on this machine."""
    for size, frames in SHAPES:
        width, height = map(int, size.split("x"))
        shape = {"width": width, "height": height, "frames": frames}
        maker.make({**shape, "steps": 4})
        if maker.journal.step_cpu_s >= LEAST_STEP_CPU_S:
            break
    return {**shape, "steps": math.ceil(SPARE * RUN_S / maker.journal.step_cpu_s)}


def _long_enough(maker: Maker, film: dict[str, Any]) -> dict[str, Any]:
    """The film with so many steps that it takes RUN_S: a short film's steps are slower than a long one's."""
    took_s = maker.make(film).gpu_s
    return {**film, "steps": math.ceil(film["steps"] * max(1.0, SPARE * RUN_S / took_s))}


def _ticket(store: Store, film: dict[str, Any]) -> Ticket:
    job = new_job(str(uuid.uuid4()), model=MODEL, **film)
    store.set_quotas({QUEUE: 1}, op=uuid.uuid4().hex)
    answer = store.submit(job, op=uuid.uuid4().hex, release=True)
    return answer.tickets[0]


def _lose_workers(store: Store) -> None:
    """So many that the store counts one loss in every GPU-hour."""
    for number in range(LOSSES):
        lease = store.claim(_ticket(store, {}), worker=f"lost-{number}", token=uuid.uuid4().hex, lease_s=3.0)
        assert isinstance(lease, Lease)
        store.lose(
            lease.job.id, lease.attempt, lease.token, reason="as planned", max_crashes=1, op=uuid.uuid4().hex
        )
