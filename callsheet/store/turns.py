"""The part of the store that tells places in line: turns of tenants, and what stands before a place."""

from __future__ import annotations

from typing import Protocol

from callsheet.records.lanes import Before, Turn


class Turns(Protocol):
    """Inherited by :class:`~callsheet.store.protocol.Store`; nothing here changes anything."""

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
