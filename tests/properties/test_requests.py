"""Properties of request validation: nothing but RequestError, every fault, and only allowed shapes pass."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from callsheet.catalog.validate import ARGUMENTS, build_request
from callsheet.errors import RequestError
from callsheet.records.requests import VideoRequest
from tests.support.catalogs import NOW, built_in

CATALOG = built_in()
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
ANY_REQUEST = st.dictionaries(st.sampled_from(ARGUMENTS) | st.text(st.characters()), JSON)

#: For each argument, values that are wrong for every model.
WRONG: dict[str, st.SearchStrategy[Any]] = {
    "prompt": st.sampled_from(["", "  ", "\x00", "\ud800", 3, [], "x" * 101]),
    "negative_prompt": st.sampled_from(["\x00", 3, {}, "x" * 101]),
    "model": st.sampled_from(["", "nope", 3]),
    "size": st.sampled_from(["", "64", "64X64", "0x64", 64, [64, 64]]),
    "frames": st.sampled_from([0, -1, 1.5, math.nan, True, "17"]),
    "fps": st.sampled_from([0, -1, 1.5, math.inf, False, "8", 10**9]),
    "steps": st.sampled_from([0, -1, 1.5, True, "8", 10**9]),
    "guidance": st.sampled_from([-1, math.nan, math.inf, True, "5", 1e9]),
    "seed": st.sampled_from([-1, 1.5, True, "1", 2**63]),
    "tier": st.sampled_from(["", "gold", 1]),
    "tenant": st.sampled_from(["", "a b", "x" * 129, 1]),
    "deadline": st.sampled_from([0, NOW, math.nan, "soon", True, NOW * 1000]),
    "idempotency_key": st.sampled_from(["", "a b", "x" * 129, 1]),
}


def build(arguments: Any) -> VideoRequest:
    checked = build_request(arguments, CATALOG, now=NOW, draw_seed=lambda: 1, max_prompt_chars=100)
    return checked.request


def attempt(arguments: Any) -> VideoRequest | RequestError:
    try:
        return build(arguments)
    except RequestError as error:
        return error


@given(ANY_REQUEST | JSON)
@settings(max_examples=300)
def test_arbitrary_json_gives_a_request_or_a_request_error(arguments: Any) -> None:
    answer = attempt(arguments)
    if isinstance(answer, RequestError):
        assert "\x00" not in str(answer)
        str(answer).encode()  # no lone surrogate: it has to reach logs and HTTP


@given(st.sampled_from(sorted(CATALOG.names)), ANY_REQUEST)
def test_whatever_passes_is_allowed_by_its_model(model: str, arguments: dict[str, Any]) -> None:
    request = attempt({"prompt": "a"} | arguments | {"model": model})
    if isinstance(request, RequestError):
        return
    spec = CATALOG.get(model)
    assert (request.width, request.height) in spec.sizes
    assert 1 <= request.frames <= spec.max_frames
    assert (request.frames - 1) % spec.frame_stride == 0
    assert 1 <= request.fps <= spec.max_fps
    assert 1 <= request.steps <= spec.max_steps
    assert 0 <= request.guidance <= spec.max_guidance
    assert VideoRequest.from_json(json.loads(json.dumps(request.to_json()))) == request


@given(st.fixed_dictionaries({}, optional=WRONG))
def test_every_wrong_argument_is_named(wrong: dict[str, Any]) -> None:
    arguments = {"prompt": "a", "model": "tiny-wan"} | wrong
    answer = attempt(arguments)
    assert isinstance(answer, RequestError) is bool(wrong)
    named = [line.split(" ")[0] for line in str(answer).split("\n  - ")[1:]]
    assert set(named) == set(wrong)


@given(st.sampled_from(sorted(CATALOG.names)), st.floats(0.05, 12), st.integers(1, 30))
def test_seconds_give_the_nearest_allowed_number_of_frames(model: str, seconds: float, fps: int) -> None:
    spec = CATALOG.get(model)
    answer = attempt({"prompt": "a", "model": model, "seconds": seconds, "fps": fps})
    if isinstance(answer, RequestError):
        assert fps > spec.max_fps or seconds * fps > spec.max_frames or seconds * fps < 0.5
        return
    frames = answer.frames
    allowed = range(1, spec.max_frames + 1, spec.frame_stride)
    assert frames in allowed
    best = min(abs(n - seconds * fps) for n in allowed)
    assert math.isclose(abs(frames - seconds * fps), best, abs_tol=1e-9)
