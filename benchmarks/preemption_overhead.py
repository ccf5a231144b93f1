"""What background saves cost a run that nothing disturbs: the same film with them and without, in pairs.

Performers as workers have them, each in a process: real steps, records in a Valkey with an append-only file,
checkpoints in a folder. The two work in turns (``preemption_turns.py`` says why). The fleet is one that has
lost a worker in every GPU-hour, since in one that lost none no run of a minute would be saved at all.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import redis

from benchmarks.preemption_figures import Pair, Run
from benchmarks.preemption_stage import LEAST_STEP_CPU_S, MODEL, SHAPES, settings_of
from benchmarks.preemption_turns import Studio, in_turns
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
SPARE = 1.3  # steps take longer in one run than in the next: a sixth was seen
NO_SAVES_S = 86_400.0  # between two saves
LOSSES = 23  # workers lost in the fleet's first 86,400 GPU-seconds, which the store takes for granted: 1/h


class Made(NamedTuple):
    """What a process tells of a film that it made."""

    gpu_s: float  # useful GPU-seconds, as its record has them; turns of others included
    cpu_s: float  # CPU-seconds of the process, saving thread included
    saves: int  # checkpoints in the background
    step_cpu_s: float  # CPU-seconds of the quickest step but the first


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

    def step(self, done: int, total: int, step_s: float = 0.0) -> None:
        """A step has ended."""
        self.used_s.append(time.process_time())
        super().step(done, total, step_s)

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

    def make(self, film: dict[str, Any]) -> Made:
        """One film. Raises JobFailed."""
        ticket = _ticket(self._store, film)
        cpu_s, kept = time.process_time(), self._store.kept
        state = self._performer.perform(ticket)
        job: Job = self._store.get(ticket.job_id)
        if state is not State.SUCCEEDED:
            raise JobFailed(f"job {job.id} of the benchmark is {state}: {job.error}")
        used_s = time.process_time() - cpu_s
        return Made(job.gpu_s_useful, used_s, self._store.kept - kept, self.journal.step_cpu_s)


def measure(folder: Path, pairs: int, say: Callable[[str], None]) -> list[Pair]:
    """``pairs`` times the film with saves as computed and the film without, made in turns (``in_turns``)."""
    with Valkey(aof=True) as valkey:
        settings = settings_of(folder, valkey.url)
        _lose_workers(Counting(valkey.client(), retention_s=settings.retention_s))
        with Studio(open_maker, settings, 0.0) as saving, Studio(open_maker, settings, NO_SAVES_S) as plain:
            film = _film(plain)
            saving.make({**film, "steps": 3})
            say(f"overhead: {pairs} pairs of {film['steps']} steps, {2 * pairs * RUN_S * SPARE / 60:.0f} min")
            made = []
            for number in range(pairs):
                made.append(_pair(saving, plain, film, saving_first=number % 2 == 0))
                say(f"overhead: {made[-1].overhead:.2%} of run time, {made[-1].cpu_overhead:.2%} of CPU time")
    return made


def open_maker(settings: Settings, interval_s: float) -> Callable[[dict[str, Any]], Made]:
    """In a process of its own: what makes its films."""
    wiring.configure(settings)
    set_threads(settings)
    store = Counting(
        redis.Redis.from_url(settings.store_url, decode_responses=True), retention_s=settings.retention_s
    )
    return Maker(store, settings, interval_s).make


def _pair(saving: Studio, plain: Studio, film: dict[str, Any], *, saving_first: bool) -> Pair:
    order = (saving, plain) if saving_first else (plain, saving)
    runs = [Run(took_s, made.cpu_s, made.saves) for made, took_s in in_turns(order, film)]
    return Pair(*(runs if saving_first else runs[::-1]))


def _film(studio: Studio) -> dict[str, Any]:
    """A film of at least RUN_S with steps of at least LEAST_STEP_CPU_S on this machine."""
    for size, frames in SHAPES:
        width, height = map(int, size.split("x"))
        shape = {"width": width, "height": height, "frames": frames}
        step_cpu_s = studio.make({**shape, "steps": 4}).step_cpu_s
        if step_cpu_s >= LEAST_STEP_CPU_S:
            break
    steps = math.ceil(SPARE * RUN_S / step_cpu_s)
    took_s = studio.make({**shape, "steps": steps}).gpu_s  # a short film's steps are slower than a long one's
    return {**shape, "steps": math.ceil(steps * max(1.0, SPARE * RUN_S / took_s))}


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
