"""The one rule that makes and reads queue names: ``{tier}.{class}`` and ``{tier}.{class}.{lane}``.

``pro.h100`` is shared by all models, ``pro.h100.wan2.2-t2v-a14b`` is the lane of one. Tiers and classes hold
no dot, so the first two dots part the name; a lane may hold more of them. Beside these, every worker has a
direct queue, ``direct.h100-0@host``, for a job that a GPU was freed for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from callsheet.errors import BadQueueName
from callsheet.records.lanes import DIRECT

_WORD = r"[a-z0-9]+(?:-[a-z0-9]+)*"
_LANE = r"[a-z0-9]+(?:[.-][a-z0-9]+)*"
_NAME = re.compile(rf"(?P<tier>{_WORD})\.(?P<gpu_class>{_WORD})(?:\.(?P<lane>{_LANE}))?")


@dataclass(frozen=True, slots=True, order=True)
class QueueName:
    """A queue by its parts. Raises BadQueueName for parts that would not read back."""

    tier: str  # service class: lower-case letters and digits, words joined by "-"
    gpu_class: str  # what its jobs need at least; spelled like a tier
    lane: str = ""  # catalog name of a model with its own lane, "" = shared; words joined by "-" or "."

    def __post_init__(self) -> None:
        for part, value, pattern in (
            ("tier", self.tier, _WORD),
            ("GPU class", self.gpu_class, _WORD),
            ("lane", self.lane, f"(?:{_LANE})?"),
        ):
            if re.fullmatch(pattern, value) is None:
                dots = ' or "."' if part == "lane" else ""
                raise BadQueueName(
                    f"{part} {value!r} cannot stand in a queue name; "
                    f'allowed: lower-case letters and digits, words joined by "-"{dots}'
                )

    def __str__(self) -> str:
        return f"{self.tier}.{self.gpu_class}.{self.lane}" if self.lane else f"{self.tier}.{self.gpu_class}"


@lru_cache(maxsize=16384)
def queue_name(tier: str, gpu_class: str, lane: str = "") -> str:
    """The name of a queue. Raises BadQueueName."""
    return str(QueueName(tier, gpu_class, lane))


def direct_queue(worker: str) -> str:
    """The queue that one worker looks into before all others."""
    return f"{DIRECT}{worker}"


def worker_of(queue: str) -> str:
    """The worker of a direct queue; "" for any other queue."""
    return queue.removeprefix(DIRECT) if queue.startswith(DIRECT) else ""


@lru_cache(maxsize=16384)
def parse_queue(name: str) -> QueueName:
    """The parts of a queue's name. Raises BadQueueName for a name that :func:`queue_name` does not make."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise BadQueueName(f"{name!r} is not a queue of callsheet; they read tier.class or tier.class.lane")
    return QueueName(match["tier"], match["gpu_class"], match["lane"] or "")


def lane_of(queue: str) -> str:
    """The lane of a queue; "" = shared. Raises BadQueueName."""
    return parse_queue(queue).lane
