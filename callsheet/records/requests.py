"""A validated request: what one job renders. Made by ``callsheet.catalog.validate``, never by hand."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

TIERS = ("pro", "free")
PREEMPTING = ("pro",)  # tiers whose waiting jobs may take a GPU
PREEMPTIBLE = ("free",)  # from jobs of these
MAX_AHEAD_S = 366 * 86400.0  # of a deadline or a span; a later one was meant in other units


@dataclass(frozen=True, slots=True)
class VideoRequest:
    """Everything that decides the pixels of a film, and who is served."""

    prompt: str
    model: str  # catalog name
    negative_prompt: str
    width: int  # pixels
    height: int  # pixels
    frames: int
    fps: int
    steps: int  # denoising steps
    guidance: float
    seed: int  # 0 .. 2**63 - 1; drawn at submit when the caller gave none
    tier: str = "free"  # service class: pro or free
    tenant: str = "default"  # who is served and counted
    deadline: float = 0.0  # must have started by then, seconds since the epoch; 0 = none
    not_before: float = 0.0  # must not start earlier, seconds since the epoch; 0 = at once
    idempotency_key: str = ""  # "" = none
    reproducible: str = ""  # "strict": resumed only where the film comes out bit for bit; "" = wherever

    @property
    def seconds(self) -> float:
        """Length of the film in seconds."""
        return self.frames / self.fps

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dict; :meth:`from_json` reads it back."""
        # every field is a plain value, so asdict's deep copy, a tenth of a submit, would be for nothing
        return {name: getattr(self, name) for name in _FIELDS}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> VideoRequest:
        """Read :meth:`to_json` back; fields of a newer version are left out."""
        return cls(**{name: value for name, value in data.items() if name in _FIELDS})


_FIELDS = tuple(field.name for field in dataclasses.fields(VideoRequest))
