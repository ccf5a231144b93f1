"""Submitting.

Validate, place, record, release. Nothing is stored or published for a request that is wrong.
"""

from __future__ import annotations

import secrets
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from callsheet.catalog import Catalog
from callsheet.catalog.validate import build_request
from callsheet.records.jobs import NewJob, Submitted, Ticket
from callsheet.routing.classes import live_classes
from callsheet.routing.estimates import rough_capacity
from callsheet.routing.fair import charge_s, delay_s
from callsheet.routing.fit import need_gib
from callsheet.routing.fleet import live_rules
from callsheet.routing.placement import place
from callsheet.routing.queues import QueueName
from callsheet.routing.work import work_s
from callsheet.settings import Settings
from callsheet.store.protocol import Store
from callsheet.tasks.admit import Admission

FLEET_S = 1.0  # how long a look at the live fleet is good for


@dataclass(frozen=True, slots=True)
class _Fleet:
    """The live GPUs, as far as a submit needs them."""

    classes: frozenset[str]
    capacity: float  # reference seconds of work per second


@dataclass(frozen=True, slots=True)
class Extras:
    """What comes from Celery's options rather than from the request's arguments."""

    task_id: str = ""  # "" = draw one
    canvas: Mapping[str, Any] | None = None
    not_before: float = 0.0  # seconds since the epoch; 0 = at once
    deadline: float = 0.0  # seconds since the epoch; 0 = none


class Submitter:
    """Turns arguments into a recorded job. Thread-safe; one per process.

    ``publish`` takes the tickets that the job's queue has room for; None = nothing is released.
    ``ask`` lets the controllers look at once, for a job that may take a GPU from another.
    """

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        settings: Settings,
        publish: Callable[[Iterable[Ticket]], int] | None,
        ask: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._catalog, self._settings = store, catalog, settings
        self._publish, self._ask, self._clock = publish, ask, clock
        self._rules = live_rules(catalog, settings)
        self._admission = Admission(store, self._rules, clock)
        self._looked: tuple[float, _Fleet] = (-FLEET_S, _Fleet(frozenset(), 0.0))

    def submit(self, arguments: Mapping[str, Any], extras: Extras = Extras()) -> Submitted:
        """Record one job and release what its queue's quota allows.

        Raises RequestError (every fault at once), NoGpuFits, NotAdmitted, IdempotencyConflict, Unreachable.
        """
        job = self._new_job(arguments, extras)
        self._admission.check(job)
        answer = self._store.submit(
            job, op=uuid.uuid4().hex, alias=bool(extras.task_id), release=self._publish is not None
        )
        if self._publish is not None:
            self._publish(answer.tickets)
            if answer.urgent:
                self._ask()
        return answer

    def _new_job(self, arguments: Mapping[str, Any], extras: Extras) -> NewJob:
        built = build_request(
            arguments,
            self._catalog,
            now=self._clock(),
            draw_seed=lambda: secrets.randbelow(2**63),
            max_prompt_chars=self._settings.max_prompt_chars,
        )
        request = replace(
            built.request,
            not_before=extras.not_before,
            deadline=min(filter(None, (built.request.deadline, extras.deadline)), default=0.0),
        )
        spec = self._catalog.get(request.model)
        need = need_gib(spec, request.width, request.height, request.frames)
        fleet = self._fleet()
        gpu_class = place(need, fleet=fleet.classes, allowed=self._settings.gpu_classes)
        work = work_s(spec, request)
        queue = str(QueueName(request.tier, gpu_class, spec.name if spec.lane else ""))
        return NewJob(
            id=extras.task_id or str(uuid.uuid4()),
            request=request,
            body_hash=built.body_hash,
            need_gib=need,
            gpu_class=gpu_class,
            queue=queue,
            work_s=work,
            charge_s=charge_s(work, fleet.capacity),
            delay_s=delay_s(work, self._rules.tier(request.tier).patience_s),
            canvas=dict(extras.canvas or {}),
        )

    def _fleet(self) -> _Fleet:
        """The workers that are alive, looked up at most once a second."""
        looked_at, fleet = self._looked
        if self._clock() - looked_at >= FLEET_S or self._clock() < looked_at:
            gpus = self._store.gpus()
            count = Counter(gpu.gpu_class for gpu in gpus)
            fleet = _Fleet(live_classes(gpus), rough_capacity(count, self._rules.lanes.values()))
            self._looked = (self._clock(), fleet)
        return fleet
