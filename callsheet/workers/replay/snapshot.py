"""A snapshot as data, and as one safetensors blob with a checksum over everything in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError

from callsheet.workers.replay.refusals import CheckpointRefused, UnknownFormat

FORMAT = 1
_AGAIN = "The job starts again at step 0, or goes on from an older checkpoint."


@dataclass(frozen=True)
class Snapshot:
    """A run after ``step`` finished iterations of its denoising loop."""

    tensors: dict[str, torch.Tensor]  # on the CPU, owned by the snapshot
    meta: dict[str, Any]  # JSON-able; trees of ``codec`` that name the tensors
    step: int  # finished iterations, from 1
    extra: dict[str, Any] = field(default_factory=dict)  # what ``dump`` was given besides

    @property
    def size(self) -> int:
        """Bytes of the tensors."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors.values())


def dump(snapshot: Snapshot, extra: Mapping[str, Any]) -> bytes:
    """The snapshot and ``extra`` (JSON-able) as one safetensors blob. Slow: not for the denoising thread."""
    header = {"format": FORMAT, "step": snapshot.step, "extra": dict(extra), "meta": snapshot.meta}
    text = json.dumps(header)
    digest = _digest(text, snapshot.tensors)
    blob: bytes = safetensors.torch.save(snapshot.tensors, metadata={"callsheet": text, "sha256": digest})
    return blob


def parse(blob: bytes) -> Snapshot:
    """Read :func:`dump` back. Raises CheckpointRefused: cut, damaged, foreign or (UnknownFormat) newer."""
    header, text, digest = _header(blob)
    try:
        tensors: dict[str, torch.Tensor] = safetensors.torch.load(blob)
    except (SafetensorError, KeyError, ValueError, RuntimeError) as error:
        raise _damaged(str(error)) from None
    if _digest(text, tensors) != digest:
        raise _damaged("its checksum does not fit its content")
    return Snapshot(tensors, header["meta"], header["step"], header["extra"])


def read_extra(blob: bytes) -> dict[str, Any]:
    """What :func:`dump` was given besides the snapshot, without reading (or checking) the tensors."""
    extra: dict[str, Any] = _header(blob)[0]["extra"]
    return extra


def _header(blob: bytes) -> tuple[dict[str, Any], str, str]:
    """Our metadata, its text and the checksum. A blob begins with its JSON header's length in 8 bytes."""
    try:
        length = int.from_bytes(blob[:8], "little")
        found = json.loads(blob[8 : 8 + length])["__metadata__"]
        text, digest = str(found["callsheet"]), str(found["sha256"])
        header = json.loads(text)
        form = header["format"]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise _damaged(f"its header cannot be read ({type(error).__name__})") from None
    if form != FORMAT:
        raise UnknownFormat(f"the checkpoint has format {form!r}, known here is {FORMAT}. {_AGAIN}")
    return header, text, digest


def _digest(text: str, tensors: Mapping[str, torch.Tensor]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _damaged(why: str) -> CheckpointRefused:
    return CheckpointRefused(f"the checkpoint is damaged or no checkpoint: {why}. {_AGAIN}")
