"""The door to the deployment, opened late: Celery and Redis load here, not before."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callsheet.client import Client


def client() -> Client:
    """The deployment that the settings name."""
    from callsheet.client import Client

    return Client()
