"""A Valkey whose clients have the rights that docs/redis.md gives them, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import redis

from tests.support.valkey import Valkey

DOC = Path(__file__).parents[2] / "docs" / "redis.md"
PASSWORD = "secret"


def documented_rights() -> list[str]:
    """User name and rules, as words of ``ACL SETUSER``."""
    found = re.search(r"^ACL SETUSER (\S+ on >PASSWORD .+)$", DOC.read_text(), re.MULTILINE)
    assert found, f"{DOC.name} no longer says ACL SETUSER"
    return found[1].replace("PASSWORD", PASSWORD).split()


class Restricted(Valkey):
    """As a Valkey; ``url`` is the restricted user's."""

    def __init__(self, *args: str, aof: bool = False) -> None:
        rights = documented_rights()
        self.user = rights[0]
        super().__init__("--user", *rights, *args, aof=aof)

    @property
    def url(self) -> str:
        """``redis://`` URL of database 0, with the user's name and password."""
        return f"redis://{self.user}:{PASSWORD}@127.0.0.1:{self.port}/0"

    def denied(self) -> list[str]:
        """What the user was not allowed, once each: ``command flushall``, ``key x``."""
        with redis.Redis(port=self.port, decode_responses=True) as admin:
            entries = admin.execute_command("ACL", "LOG", 100)
        fields = [
            dict(zip(entry[::2], entry[1::2], strict=True)) if isinstance(entry, list) else entry
            for entry in entries
        ]
        return sorted({f"{entry['reason']} {entry['object']}" for entry in fields})
