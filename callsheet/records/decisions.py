"""What the policy decided, and why, in words: what is kept of a tick for whoever asks later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

SEAT = "seat"  # a waiting job gets a GPU; with a victim, once that has yielded
LOAD = "load"  # a GPU is to load weights
SERVE = "serve"  # GPUs are to serve other queues, or in another order
SCALE = "scale"  # GPUs wanted of a class


@dataclass(frozen=True, slots=True)
class Decision:
    """One of them. What does not belong to its kind is empty."""

    kind: str
    reason: str
    gpus: tuple[str, ...] = ()  # names
    job: str = ""  # who gets the GPU
    victim: str = ""  # the job that yields it
    lane: str = ""  # whose weights
    queues: tuple[str, ...] = ()  # in the order in which the GPUs serve them

    def to_json(self) -> dict[str, Any]:
        """Plain data without what is empty."""
        return {one.name: _plain(value) for one in fields(self) if (value := getattr(self, one.name))}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Decision:
        """Read :meth:`to_json` back; what a newer version added is left out."""
        names = [one.name for one in fields(cls) if one.name in data]
        known: dict[str, Any] = {"kind": "", "reason": ""} | {name: data[name] for name in names}
        lists = {name: tuple(known.get(name, ())) for name in ("gpus", "queues")}
        return cls(**(known | lists))


@dataclass(frozen=True, slots=True)
class Account:
    """What one tick decided. Nothing in it = it changed nothing."""

    decisions: tuple[Decision, ...] = ()
    targets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # class -> lane -> GPUs, if new
    at: float = 0.0  # store time; set by the store

    @property
    def empty(self) -> bool:
        """Whether there is nothing to tell."""
        return not self.decisions and not self.targets

    def to_json(self) -> dict[str, Any]:
        """Plain data; :meth:`from_json` reads it back. The store adds ``at``."""
        told: dict[str, Any] = {"decisions": [one.to_json() for one in self.decisions]}
        return told | ({"targets": self.targets} if self.targets else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Account:
        """Read what the store kept."""
        decisions = tuple(Decision.from_json(one) for one in data.get("decisions", ()))
        return cls(decisions, data.get("targets", {}), float(data.get("at", 0.0)))


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
