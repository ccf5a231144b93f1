"""The part of the store about places in line: tenants' turns, what stands before a place, old jobs first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from callsheet.records.lanes import Before, Turn


class Turns(Protocol):
    """Inherited by :class:`~callsheet.store.protocol.Store`, whose rules hold here too."""

    def turn(self, tier: str, tenant: str) -> Turn:
        """Where a tenant's next job would stand among the others of its tier."""
        ...

    def before(self, tier: str, key: float) -> dict[str, Before]:
        """What waits before a place (``start_tag``), by backlog of the tier; those without are left out.

        Jobs whose ticket is out are not counted. Their work is that of the backlog, by their number.
        """
        ...

    def keyed(self, tenant: str, key: str) -> str:
        """The job behind a tenant's idempotency key; "" when there is none."""
        ...

    def hasten(self, older_s: Mapping[str, float], *, op: str, limit: int = 1000) -> list[str]:
        """PENDING jobs that waited so many seconds (by tier) get the place of their creation.

        Neither their tenant's turns nor their length count any more, so they stand before every younger job.
        Answers the ids of those that moved.
        """
        ...
