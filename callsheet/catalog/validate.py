"""From a caller's arguments to a :class:`VideoRequest`; a bad one gets one error that lists every fault."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from callsheet.catalog.listing import Catalog
from callsheet.catalog.reading import Reader, show
from callsheet.catalog.shape import read_frames, read_size
from callsheet.errors import RequestError
from callsheet.records.models import ModelSpec
from callsheet.records.requests import MAX_AHEAD_S, TIERS, VideoRequest

ARGUMENTS = (
    "prompt",
    "model",
    "negative_prompt",
    "size",
    "width",
    "height",
    "frames",
    "seconds",
    "fps",
    "steps",
    "guidance",
    "seed",
    "tier",
    "tenant",
    "deadline",
    "idempotency_key",
    "reproducible",
)

REPRODUCIBLE = ("strict",)

#: What diffusers and other servers call them.
ALSO_CALLED = {
    "num_frames": "frames",
    "num_inference_steps": "steps",
    "guidance_scale": "guidance",
    "cfg_scale": "guidance",
    "duration": "seconds",
    "resolution": "size",
    "text": "prompt",
}

MAX_SEED = 2**63 - 1

#: What no model goes beyond; stands for the model's limits while the model is not known.
_MAX_FPS, _MAX_STEPS, _MAX_GUIDANCE = 240, 1000, 1000.0


@dataclass(frozen=True, slots=True)
class Checked:
    """A request that passed."""

    request: VideoRequest
    body_hash: str  # what an idempotency key protects


def build_request(
    args: Mapping[str, Any],
    catalog: Catalog,
    *,
    now: float,
    draw_seed: Callable[[], int],
    max_prompt_chars: int,
) -> Checked:
    """Check ``args`` (see ARGUMENTS) and fill in the model's defaults.

    ``now`` is the time in seconds since the epoch, ``draw_seed`` gives a seed when the caller gave none.
    Raises RequestError that lists every fault with what is allowed.
    """
    if not isinstance(args, Mapping):
        raise RequestError(
            f"a request is a set of named arguments, not {show(args)}; allowed: {', '.join(ARGUMENTS)}"
        )
    reader = Reader(args)
    reader.refuse_unknown(ARGUMENTS, ALSO_CALLED)
    values = _text(reader, max_prompt_chars) | _service(reader, now)
    spec = _model(reader, catalog)
    values |= _picture(reader, spec)
    if reader.faults or spec is None:
        raise RequestError(_say(reader.faults))
    seed_given = reader.has("seed")
    values["seed"] = values["seed"] if seed_given else draw_seed()
    request = VideoRequest(model=spec.name, **values)
    return Checked(request, body_hash(request, seed_given=seed_given))


def picture_faults(spec: ModelSpec, args: Mapping[str, Any]) -> list[str]:
    """What is wrong with the shape and sampling (``size``, ``frames``, ``steps`` ...) asked of a model."""
    reader = Reader(args)
    _picture(reader, spec)
    return reader.faults


def body_hash(request: VideoRequest, *, seed_given: bool) -> str:
    """SHA-256 of everything that a retry under the same idempotency key must repeat.

    Left out are the key itself, the earliest start (a countdown moves with the clock) and a seed that was
    drawn.
    """
    body = request.to_json()
    for name in ("idempotency_key", "not_before", *(() if seed_given else ("seed",))):
        del body[name]
    if not request.reproducible:
        del body["reproducible"]  # as bodies were hashed before it could be asked for
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _say(faults: list[str]) -> str:
    head = "the request has 1 fault" if len(faults) == 1 else f"the request has {len(faults)} faults"
    return "\n  - ".join([f"{head}; nothing was stored. Correct and send it again:", *faults])


def _model(reader: Reader, catalog: Catalog) -> ModelSpec | None:
    name = reader.string("model")
    if name is not None and name in catalog:
        return catalog.get(name)
    if name is not None:
        reader.fault("model", f"is not in the catalog; {catalog.hint(name)}")
    elif not reader.has("model"):
        reader.fault("model", f"is missing; allowed: {', '.join(catalog.names)}")
    return None


def _text(reader: Reader, max_chars: int) -> dict[str, Any]:
    if not reader.has("prompt"):
        reader.fault("prompt", f"is missing; allowed: 1 to {max_chars} characters")
    return {
        "prompt": reader.prose("prompt", max_chars, may_be_blank=False),
        "negative_prompt": reader.prose("negative_prompt", max_chars, may_be_blank=True) or "",
    }


def _service(reader: Reader, now: float) -> dict[str, Any]:
    """Who is served, how and until when."""
    return {
        "tier": reader.choice("tier", TIERS) or "free",
        "tenant": reader.label("tenant") or "default",
        "idempotency_key": reader.label("idempotency_key") or "",
        "deadline": _deadline(reader, now),
        "reproducible": reader.choice("reproducible", REPRODUCIBLE) or "",
    }


def _deadline(reader: Reader, now: float) -> float:
    deadline = reader.number("deadline", 0, 1e15, " seconds since the epoch")
    if deadline is None:
        return 0.0
    if deadline <= now:
        reader.fault(
            "deadline", f"has passed; allowed: later than {now:.0f} (now), in seconds since the epoch"
        )
    elif deadline > now + MAX_AHEAD_S:
        reader.fault(
            "deadline", "is more than a year ahead; allowed: seconds since the epoch, not milliseconds"
        )
    return deadline


def _picture(reader: Reader, spec: ModelSpec | None) -> dict[str, Any]:
    """Shape and sampling, with the model's defaults. Without a model only what no model allows is a fault."""
    fps = reader.whole("fps", 1, spec.max_fps if spec else _MAX_FPS)
    steps = reader.whole("steps", 1, spec.max_steps if spec else _MAX_STEPS)
    guidance = reader.number("guidance", 0, spec.max_guidance if spec else _MAX_GUIDANCE)
    seed = reader.whole("seed", 0, MAX_SEED)
    size = read_size(reader, spec)
    # seconds cannot be turned into frames at a frame rate that is wrong
    rate = fps or (None if reader.has("fps") or spec is None else spec.fps)
    frames = read_frames(reader, spec, rate)
    if spec is None:
        return {}
    return {
        "width": size[0],
        "height": size[1],
        "frames": frames,
        "fps": rate,
        "steps": spec.steps if steps is None else steps,
        "guidance": spec.guidance if guidance is None else guidance,
        "seed": seed,
    }
