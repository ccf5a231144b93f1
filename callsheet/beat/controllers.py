"""One round of each controller: plain functions of the store and what they act through.

Safe to repeat at any time, and each is useful alone: a fault in one does not stop the others (``tick.py``).
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callsheet.beat.patience import Patience
from callsheet.errors import Unreachable
from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Job, Ticket
from callsheet.routing.benches import AGED
from callsheet.routing.fleet import FleetRules
from callsheet.routing.queues import parse_queue, worker_of
from callsheet.routing.reroute import new_home, stranded
from callsheet.settings import Settings
from callsheet.store.protocol import Store
from callsheet.store.rules import PASSED

if TYPE_CHECKING:
    import redis

    from callsheet.artifacts.objects import Objects

log = logging.getLogger(__name__)

GAP_RENEWALS = 1.5  # renewals that nobody made before the store counts as having been away
STRANDED = 1000  # jobs moved from one queue in one tick

#: Length of a Celery queue on the broker.
Depth = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Hands:
    """What the controllers act through."""

    store: Store
    settings: Settings
    depth: Depth
    release: Callable[[Store, str], int]  # publishes what one queue's quota allows
    deliver: Callable[[Store, str], bool]
    publish: Callable[[Ticket], bool]
    signal: Callable[[str, str], None]  # revoke signal "yield" for a ticket id, to one worker
    objects: Callable[[], Objects]
    broker: Callable[[], redis.Redis | None]  # a client on the broker's Redis; None for a broker that is none
    fleet: FleetRules = field(default_factory=FleetRules)
    keeps_plans: bool = True  # what ticks decide is kept, for `callsheet explain`
    patience: Patience = field(default_factory=Patience)


def wake(hands: Hands) -> int:
    """Jobs whose eta has come go to their backlog; jobs past their deadline expire."""
    return len(hands.store.wake(op=op()))


def reap(hands: Hands) -> int:
    """Attempts whose lease ran out go back to the backlog, or fail at the third crash."""
    settings = hands.settings
    lost = hands.store.reap(
        max_crashes=settings.max_crashes,
        lease_s=settings.lease_s,
        gap_s=GAP_RENEWALS * settings.renew_s,
        op=op(),
    )
    return len(lost)


def heal(hands: Hands) -> int:
    """Tickets that are old while their queue is empty were lost: their jobs get new ones."""
    healed = 0
    for queue in hands.store.published():
        if not worker_of(queue) and hands.depth(queue.removeprefix(PASSED)) == 0:
            healed += len(hands.store.heal(queue, older_s=hands.settings.heal_after_s, op=op()))
    return healed


def reroute(hands: Hands) -> int:
    """Jobs whose queue went unserved for too long move to one that is served and that they fit."""
    store = hands.store
    gpus = takers(store)
    ticketed = [queue for queue in store.published() if not worker_of(queue) and not queue.startswith(PASSED)]
    looked_at = dict.fromkeys([*store.backlog(), *ticketed])
    unserved = stranded(looked_at, gpus, hands.fleet.lanes)
    served = [queue for queue in looked_at if queue not in unserved]
    waiting: list[str] = []
    for queue in hands.patience.exhausted(unserved, served, store.now()):
        if queue in ticketed:  # nobody will ever take those tickets: they are worthless from here on
            store.heal(queue, older_s=0.0, limit=STRANDED, reason="nobody serves its queue", op=op())
        waiting += store.backlog_jobs(queue, limit=STRANDED)
    jobs = (job for job in store.get_many(waiting) if job is not None)
    return sum(_move(hands, job, gpus) for job in jobs)


def hasten(hands: Hands) -> int:
    """Jobs that waited most of what their tier promises go before younger ones. Answers how many moved."""
    bound = {rule.name: AGED * rule.longest_wait_s for rule in hands.fleet.tiers if rule.longest_wait_s}
    return len(hands.store.hasten(bound, op=op())) if bound else 0


def release_all(hands: Hands) -> int:
    """Publish what the quotas of the last rebalance allow."""
    return sum(hands.release(hands.store, queue) for queue in hands.store.backlog())


def deliver(hands: Hands) -> int:
    """Outcomes that a worker left undelivered; one that fails now does not hold up the others."""
    delivered = 0
    for job_id in hands.store.undelivered():
        try:
            delivered += hands.deliver(hands.store, job_id)
        except Unreachable:
            raise
        except Exception:
            log.warning("job %s is not delivered yet; tried again later", job_id, exc_info=True)
    return delivered


def _move(hands: Hands, job: Job, gpus: list[Gpu]) -> bool:
    now_in = parse_queue(job.queue)
    home = new_home(job.need_gib, tier=now_in.tier, lane=now_in.lane, gpus=gpus, lanes=hands.fleet.lanes)
    if home is None:
        return False
    return hands.store.reroute(job.id, gpu_class=home.gpu_class, queue=str(home), op=op())


def takers(store: Store) -> list[Gpu]:
    """The live GPUs that take new jobs. An order counts at once, before its worker has heard of it."""
    orders = store.gpu_orders()
    return [gpu for gpu in store.gpus() if gpu.name not in orders]


def op() -> str:
    """A token for one call of a verb."""
    return uuid.uuid4().hex
