"""What a worker's child does with a ticket: the attempt, then its delivery, then the queue's refill."""

from __future__ import annotations

import logging
import time
import uuid
from dataclasses import replace

from callsheet import wiring
from callsheet.errors import Unreachable
from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Ticket
from callsheet.records.states import TERMINAL, State
from callsheet.routing.queues import direct_queue
from callsheet.store.protocol import Store
from callsheet.tasks.deliver import deliver
from callsheet.tasks.publish import release
from callsheet.workers.journal import SlateJournal
from callsheet.workers.perform import Performer, set_threads
from callsheet.workers.replay import build_id
from callsheet.workers.resident import ResidentModels
from callsheet.workers.slate import Slate
from callsheet.workers.subscriber import RECONCILE_S

log = logging.getLogger(__name__)

CORDONED = "cordoned"  # the refusal of a ticket that an ordered GPU took, since its worker has not heard yet
REST_MARGIN_S = 0.5  # beside the heartbeat that hears of the order and the look that ends the subscriptions


class Attendant:
    """A performer that also delivers and refills.

    Made in the child: torch and obstore never meet the parent.
    """

    def __init__(self, slate: Slate, gpu: Gpu) -> None:
        settings = wiring.settings()
        set_threads(settings)
        self._worker, self._journal = gpu.name, SlateJournal(slate, build_id())
        self._rest_s = settings.renew_s + RECONCILE_S + REST_MARGIN_S
        self._performer = Performer(
            store=wiring.store(),
            objects=wiring.objects,
            catalog=wiring.catalog(),
            settings=settings,
            resident=ResidentModels(settings.max_resident_models, gpu.vram_gib, self._keep),
            journal=self._journal,
            worker=gpu.name,
        )

    def perform(self, ticket: Ticket) -> State | str:
        """Run the attempt, then deliver and refill; then rest, if the GPU turned out to be cordoned.

        Delivery and refill are left to the controllers when the store is away.
        """
        answer = self._performer.perform(ticket)
        try:
            follow_up(wiring.store(), ticket, delivered=answer in TERMINAL)
        except Exception as fault:  # noqa: BLE001  the outcome is recorded: nothing here may end otherwise
            log.warning("after job %s: %r; the controllers go on from here", ticket.job_id, fault)
        if answer == CORDONED:
            time.sleep(self._rest_s)
        return answer

    def preload(self, lane: str) -> str:
        """Load a lane's weights, unless nobody wants them here any more, or a job was chosen for this GPU.

        Weights that cannot be loaded are given up: the next rebalance decides anew.
        """
        store, wish = wiring.store(), wiring.store().desired_of(self._worker)
        if wish is None or wish.load != lane:
            return "not desired any more"
        if store.published_jobs(direct_queue(self._worker)):
            return "a job comes first"
        self._journal.load()
        try:
            self._performer.preload(lane)
        except Exception as fault:
            log.exception("weights of %s were not loaded", lane)
            store.desire({self._worker: replace(wish, load="", why="")}, op=uuid.uuid4().hex)
            return f"failed: {fault}"
        return "loaded"

    def _keep(self) -> tuple[str, ...]:
        """What the last rebalance wants to stay; nothing is known while the store is away."""
        try:
            wish = wiring.store().desired_of(self._worker)
        except Unreachable:
            return ()
        return wish.keep if wish else ()


def follow_up(store: Store, ticket: Ticket, *, delivered: bool) -> None:
    """Deliver an outcome, when there is one, and release what the queue's quota allows."""
    if delivered:
        deliver(store, ticket.job_id)
    release(store, ticket.queue)
