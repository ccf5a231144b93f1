"""Checks that no key of the store lives for ever by mistake.

``check_keys(client, prefix)`` fails on a key that matches no pattern of ``callsheet/store/keys.py``, or that
has no TTL and no owner there. Keys of a job may lack a TTL only while that job is active.
"""

from __future__ import annotations

import re
from typing import Any

import redis

from callsheet.records.states import TERMINAL
from callsheet.store.keys import PATTERNS

#: Keys without TTL that a verb owns, as the table in ``keys.py`` says.
OWNED = {
    "backlog", "published", "held", "deadlines", "running", "undelivered", "ended",
    "jobs_all", "jobs_state", "jobs_tenant", "quotas", "queues", "gpus",
    "gpu_order", "gpu_orders", "witness", "away", "losses", "erasing",
    "routes", "offered", "works", "leads", "desired",
}  # fmt: skip
#: Keys that live as long as a job's record.
OF_A_JOB = {"job", "events", "attempts", "aliases", "delivered", "alias", "idem"}


def _kind(key: str) -> str:
    """Name of the most specific pattern that the key matches; "" for none."""
    for name, pattern in sorted(PATTERNS.items(), key=lambda item: -len(item[1])):
        if re.fullmatch(re.escape(pattern).replace(r"\{\}", "[^:]+"), key):
            return name
    return "idem" if key.startswith("idem:") else ""


def _job_of(client: Any, kind: str, prefix: str, key: str) -> str:
    if kind == "alias":
        return str(client.get(prefix + key))
    if kind == "idem":
        return str(client.hget(prefix + key, "job_id"))
    return key.split(":")[1]


def _fault(client: Any, prefix: str, key: str) -> str:
    kind = _kind(key)
    if not kind:
        return f"{key}: no pattern in keys.py"
    if client.ttl(prefix + key) != -1 or kind in OWNED:
        return ""
    if kind not in OF_A_JOB:
        return f"{key}: neither TTL nor owner"
    job_id = _job_of(client, kind, prefix, key)
    state = client.hget(f"{prefix}job:{job_id}", "state")
    return "" if state is not None and state not in TERMINAL else f"{key}: no TTL, and its job is {state}"


def check_keys(client: redis.Redis, prefix: str) -> None:
    """Fail with every faulty key below the prefix."""
    keys = [key.removeprefix(prefix) for key in client.scan_iter(f"{prefix}*", count=1000)]
    faults = [fault for key in sorted(keys) if (fault := _fault(client, prefix, key))]
    assert not faults, "keys that live for ever:\n" + "\n".join(faults)
