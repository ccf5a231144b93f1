"""A Celery worker of ours that renders nothing: it claims, finishes and delivers at once, without torch.

For tests of what lies between an application and a worker.
"""

from __future__ import annotations

import uuid

from callsheet import wiring
from callsheet.app import app
from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Outcome, Ticket
from callsheet.records.states import State
from callsheet.store.protocol import ClaimRefused, Store
from callsheet.tasks.deliver import deliver
from callsheet.tasks.ticket import set_performer
from tests.support.live import Live

__all__ = ["QUEUE", "app", "serve", "start_quick"]

QUEUE = "free.a100"


class Quick:
    """Every attempt succeeds at once."""

    def perform(self, ticket: Ticket) -> State | str:
        """One attempt."""
        store = wiring.store()
        claim = store.claim(ticket, worker="quick", token=uuid.uuid4().hex, lease_s=30)
        if isinstance(claim, ClaimRefused):
            return claim.reason
        outcome = Outcome(State.SUCCEEDED, film="memory://film.mp4", step=claim.job.request.steps)
        store.finish(claim.job.id, claim.attempt, claim.token, outcome, op=uuid.uuid4().hex)
        deliver(store, claim.job.id)
        return State.SUCCEEDED

    def preload(self, lane: str) -> str:
        """Weights weigh nothing here."""
        return f"loaded {lane}"


def serve(store: Store, *, ttl_s: float = 600.0) -> None:
    """Register the GPU that the quick worker stands for, so that its queue gets tickets."""
    store.beat_gpu(Gpu("quick@test", "a100", 80, "quick", "test", 0, queues=(QUEUE,)), ttl_s=ttl_s)
    store.set_quotas({QUEUE: 10}, op=uuid.uuid4().hex)


def start_quick(live: Live, name: str = "quick", **env: str) -> None:
    """Start such a worker in a deployment."""
    live.start(
        name,
        *("worker", "--pool", "solo", "--queues", QUEUE, "--hostname", f"{name}@test"),
        *("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"),
        module="tests.support.quick_worker",
        env=env,
    )


set_performer(Quick)
