"""The slate: a small shared memory between a GPU worker's parent process and its one child.

The child writes what it runs; the parent reads it to renew the lease, and writes orders that the step
callback reads. It needs no lock: each side writes its own half under a sequence number (odd while writing),
so a reader never takes a torn half.
"""

from __future__ import annotations

import json
import mmap
import struct
from dataclasses import asdict, dataclass
from typing import Any

HALF = 2048  # bytes per side
_HEAD = struct.Struct("<QI")  # sequence, length of the JSON that follows
TRIES = 1000
LOADING = "weights"  # phase of a child that loads weights with no job


@dataclass(frozen=True, slots=True)
class Running:
    """What the child runs now; an empty job id means nothing."""

    job_id: str = ""
    attempt: int = 0
    token: str = ""
    ticket: int = 0  # number of the ticket that it was claimed with
    queue: str = ""
    step: int = 0
    steps: int = 0
    step_s: float = 0.0  # seconds that its steps take, once measured
    phase: str = ""
    declined: int = 0  # orders to yield that it could not obey
    loading_s: float = 0.0  # GPU-seconds spent loading so far
    pid: int = 0
    build: str = ""  # of the child: where it is equal, films are bit for bit
    resident: tuple[str, ...] = ()


class Slate:
    """Both halves; made by the parent before it forks its child."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, 2 * HALF)  # anonymous and shared: gone with the last process that holds it

    # -- the child's half

    def write_running(self, running: Running) -> None:
        """Say what runs now."""
        self._write(0, {**asdict(running), "resident": list(running.resident)})

    def read_running(self) -> Running:
        """What the child runs now."""
        data = self._read(0)
        return Running(**{**data, "resident": tuple(data["resident"])}) if data else Running()

    # -- the parent's half

    def write_order(self, token: str, order: str) -> None:
        """An order for the attempt that holds ``token``; "" takes it back.

        yield: give the GPU up with a checkpoint, or not at all. leave (the worker ends), drain (an operator
        wants the GPU idle): give it up, with a checkpoint if that works. cancel, fenced: stop, nothing is
        wanted any more.
        """
        self._write(HALF, {"token": token, "order": order})

    def read_order(self, token: str) -> str:
        """The order for this attempt; "" when there is none (or it was meant for an earlier one)."""
        data = self._read(HALF)
        return str(data["order"]) if data and data["token"] == token else ""

    # -- halves

    def _write(self, at: int, data: dict[str, Any]) -> None:
        body = json.dumps(data).encode()
        if len(body) > HALF - _HEAD.size:
            raise ValueError(f"slate entry of {len(body)} bytes is too long")
        sequence = _HEAD.unpack_from(self._map, at)[0]
        odd = sequence + 1 if sequence % 2 == 0 else sequence + 2  # a writer that died left it odd
        _HEAD.pack_into(self._map, at, odd, 0)
        self._map[at + _HEAD.size : at + _HEAD.size + len(body)] = body
        _HEAD.pack_into(self._map, at, odd + 1, len(body))

    def _read(self, at: int) -> dict[str, Any]:
        for _ in range(TRIES):
            before, length = _HEAD.unpack_from(self._map, at)
            if before % 2 == 0:
                body = bytes(self._map[at + _HEAD.size : at + _HEAD.size + length])
                if _HEAD.unpack_from(self._map, at) == (before, length):
                    return dict(json.loads(body)) if length else {}
        return {}  # its writer died while writing
