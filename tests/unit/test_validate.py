"""Requests: every fault at once, nothing guessed, text kept as given."""

from __future__ import annotations

import math
from typing import Any

import pytest

from callsheet.catalog.validate import Checked, body_hash, build_request
from callsheet.errors import RequestError
from callsheet.records.requests import VideoRequest
from tests.support.catalogs import NOW, built_in

CATALOG = built_in()


def build(**arguments: Any) -> Checked:
    return build_request(
        {"prompt": "a cat", "model": "tiny-wan"} | arguments,
        CATALOG,
        now=NOW,
        draw_seed=lambda: 42,
        max_prompt_chars=4000,
    )


def faults(**arguments: Any) -> list[str]:
    with pytest.raises(RequestError) as caught:
        build(**arguments)
    head, *lines = str(caught.value).split("\n  - ")
    assert "nothing was stored" in head
    return lines


def test_defaults_come_from_the_model() -> None:
    assert build().request == VideoRequest(
        prompt="a cat",
        model="tiny-wan",
        negative_prompt="",
        width=64,
        height=64,
        frames=17,
        fps=8,
        steps=8,
        guidance=5.0,
        seed=42,
    )


def test_everything_given_is_kept() -> None:
    request = build(
        negative_prompt="blur",
        size="96x64",
        frames=9,
        fps=12,
        steps=4,
        guidance=0,
        seed=0,
        tier="pro",
        tenant="team@acme",
        deadline=NOW + 60,
        idempotency_key="order:17",
    ).request
    assert (request.width, request.height, request.frames, request.fps, request.steps) == (96, 64, 9, 12, 4)
    assert (request.guidance, request.seed, request.tier, request.tenant) == (0.0, 0, "pro", "team@acme")
    assert (request.deadline, request.idempotency_key, request.negative_prompt) == (
        NOW + 60,
        "order:17",
        "blur",
    )


def test_none_means_not_given() -> None:
    assert build(seed=None, size=None, deadline=None, tier=None).request == build().request


def test_width_and_height_say_the_size_too() -> None:
    assert build(width=96, height=64).request == build(size="96x64").request


@pytest.mark.parametrize(
    ("seconds", "fps", "frames"),
    [
        (2, 8, 17),
        (2.4, 8, 21),
        (0.1, 8, 1),
        (0.125, 8, 1),
        (10, 8, 81),
        (10.125, 8, 81),
        (1, 30, 29),
        (1, None, 9),
    ],
)
def test_seconds_become_the_nearest_allowed_frames(seconds: float, fps: int | None, frames: int) -> None:
    assert build(seconds=seconds, fps=fps).request.frames == frames


def test_a_rounded_length_is_as_good_as_the_exact_one() -> None:
    assert build(model="ltx-video", seconds=10.71).request.frames == 257  # 257 / 24 = 10.708...


@pytest.mark.parametrize(
    "prompt",
    [
        "a 🐈‍⬛ under 🌧️, 8K",
        "قطة تمشي على العشب",
        "חתול \u202e הולך",
        "line\n\tline",
        "e\u0301 is not \u00e9",
        "  spaced  ",
        "𝔲𝔫𝔦𝔠𝔬𝔡𝔢",
    ],
)
def test_any_script_is_kept_byte_for_byte(prompt: str) -> None:
    assert build(prompt=prompt, negative_prompt=prompt).request.prompt == prompt


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"prompt": None}, "prompt is missing; allowed: 1 to 4000 characters"),
        ({"prompt": ""}, "prompt = '' is blank"),
        ({"prompt": " \n "}, "is blank"),
        (
            {"prompt": "x" * 10_000},
            "(10002 characters) is too long; allowed: up to 4000 characters, this has 10000",
        ),
        (
            {"prompt": "cat\x00"},
            "prompt = 'cat\\x00' holds U+0000 at position 3; allowed: no control characters",
        ),
        ({"prompt": "\x1b[31mred"}, "holds U+001B at position 0"),
        ({"prompt": "a\rb"}, "holds U+000D at position 1"),
        ({"prompt": "a\x9bb"}, "holds U+009B at position 1"),
        ({"prompt": "ab\ud83d"}, "holds U+D83D at position 2"),
        ({"negative_prompt": "\x07"}, "negative_prompt = '\\x07' holds U+0007"),
        ({"prompt": ["a"]}, "prompt = a list of 1 is not text"),
        ({"prompt": b"cat"}, "is not text"),
        ({"model": None}, "model is missing; allowed: wan2.1-t2v-1.3b, "),
        ({"model": "tiny-wam"}, "model = 'tiny-wam' is not in the catalog; did you mean tiny-wan"),
        ({"model": 7}, "model = 7 is not text"),
        ({"size": "64x66"}, "size = 64x66 is no size of tiny-wan; allowed: 32x32, 64x64, 96x64, 128x128"),
        ({"size": "64*64"}, "size = '64*64' is no size; write it as \"832x480\""),
        ({"size": "٦٤x٦٤"}, "is no size"),
        ({"size": 64}, "size = 64 is not text"),
        ({"width": 64}, "height is missing: it goes with width"),
        ({"height": 64}, "width is missing: it goes with height"),
        ({"width": 66, "height": 64}, "width x height = 66x64 is no size of tiny-wan; allowed: 32x32"),
        ({"width": -64, "height": 64}, "width = -64 is out of range; allowed: 1 to 99999 pixels"),
        ({"size": "64x64", "width": 64, "height": 64}, "say the same thing twice"),
        ({"frames": 0}, "frames = 0 is out of range; allowed: 1 to 81"),
        ({"frames": -17}, "frames = -17 is out of range"),
        (
            {"frames": 16},
            "frames = 16 does not fit tiny-wan; allowed: a multiple of 4 plus 1, such as 13 or 17",
        ),
        ({"frames": 82}, "frames = 82 is out of range; allowed: 1 to 81"),
        ({"frames": 17.0}, "frames = 17.0 is not a whole number"),
        ({"frames": True}, "frames = True is not a whole number"),
        ({"frames": "17"}, "frames = '17' is not a whole number"),
        ({"frames": 17, "seconds": 2}, "frames = 17 and seconds say the same thing twice"),
        ({"seconds": 0}, "seconds = 0 is out of range; allowed: 0.0625 to 10.1875 seconds at 8 fps"),
        ({"seconds": 11}, "seconds = 11 is out of range"),
        ({"seconds": math.nan}, "seconds = nan is not finite"),
        ({"seconds": "2"}, "seconds = '2' is not a number"),
        ({"fps": 0}, "fps = 0 is out of range; allowed: 1 to 30"),
        ({"fps": 31}, "fps = 31 is out of range"),
        ({"steps": 0}, "steps = 0 is out of range; allowed: 1 to 100"),
        ({"steps": 10**5000}, "steps = a number of more than 38 digits is out of range"),
        ({"guidance": math.nan}, "guidance = nan is not finite; allowed: 0 to 20"),
        ({"guidance": math.inf}, "guidance = inf is not finite"),
        ({"guidance": -0.1}, "guidance = -0.1 is out of range"),
        ({"guidance": 10**400}, "is out of range"),
        ({"guidance": False}, "guidance = False is not a number"),
        ({"seed": -1}, "seed = -1 is out of range; allowed: 0 to 9223372036854775807"),
        ({"seed": 2**63}, "seed = 9223372036854775808 is out of range"),
        ({"seed": 1.0}, "seed = 1.0 is not a whole number"),
        ({"tier": "gold"}, "tier = 'gold' is not known; allowed: pro, free"),
        ({"tier": ["pro"]}, "tier = a list of 1 is not text"),
        ({"tenant": "a b"}, "tenant = 'a b' is not allowed: 1 to 128 of A-Z"),
        ({"tenant": "é"}, "tenant = 'é' is not allowed"),
        ({"tenant": "a\n"}, "is not allowed"),
        ({"tenant": "x" * 129}, "is not allowed"),
        ({"idempotency_key": ""}, "idempotency_key = '' is not allowed"),
        ({"deadline": NOW}, "has passed; allowed: later than 1700000000 (now)"),
        ({"deadline": (NOW + 60) * 1000}, "is more than a year ahead; allowed: seconds since the epoch"),
        ({"deadline": "tomorrow"}, "deadline = 'tomorrow' is not a number"),
        ({"deadline": math.inf}, "deadline = inf is not finite"),
        ({"num_frames": 17}, "'num_frames' is not an argument; did you mean frames?"),
        ({"num_inference_steps": 8}, "did you mean steps?"),
        ({"promt": "x"}, "'promt' is not an argument; did you mean prompt?"),
        ({"zzz": 1}, "'zzz' is not an argument; allowed: prompt, model, "),
        ({"not_before": 1.0}, "'not_before' is not an argument"),
    ],
)
def test_one_fault(arguments: dict[str, Any], says: str) -> None:
    found = faults(**arguments)
    assert len(found) == 1
    assert says in found[0]
    assert len(found[0]) < 400


def test_every_fault_is_listed_even_without_a_model() -> None:
    found = faults(
        prompt="\x00" * 5000,
        model="nope",
        size="big",
        frames=0,
        fps="8",
        steps=-1,
        guidance=math.nan,
        seed=True,
        tier="gold",
        tenant="",
        deadline=1,
        idempotency_key="a b",
        foo=1,
        negative_prompt=3,
    )
    assert len(found) == 15  # the prompt is too long and holds a control character


def test_frames_and_seconds_are_both_read() -> None:
    assert len(faults(frames=0, seconds="x", size="y", width=0, height=64)) == 6


def test_a_wrong_frame_rate_does_not_hide_wrong_seconds() -> None:
    assert len(faults(fps=0, seconds=-1)) == 2


@pytest.mark.parametrize("arguments", [None, [], "prompt", 3])
def test_no_mapping_is_no_request(arguments: Any) -> None:
    with pytest.raises(RequestError, match="a request is a set of named arguments"):
        build_request(arguments, CATALOG, now=NOW, draw_seed=lambda: 1, max_prompt_chars=10)


def test_a_seed_is_drawn_only_when_needed() -> None:
    drawn: list[int] = []

    def draw() -> int:
        drawn.append(1)
        return 5

    options: dict[str, Any] = {"now": NOW, "draw_seed": draw, "max_prompt_chars": 10}
    build_request({"prompt": "a", "model": "tiny-wan", "seed": 3}, CATALOG, **options)
    with pytest.raises(RequestError):
        build_request({"prompt": "", "model": "tiny-wan"}, CATALOG, **options)
    assert not drawn
    assert build_request({"prompt": "a", "model": "tiny-wan"}, CATALOG, **options).request.seed == 5


def test_the_body_hash_covers_what_a_retry_repeats() -> None:
    first = build(idempotency_key="k")
    assert first.body_hash == build(idempotency_key="other").body_hash
    assert first.body_hash == build().body_hash
    assert first.body_hash == build(size="64x64", frames=17).body_hash  # the defaults, spelled out
    for other in ({"prompt": "a dog"}, {"seed": 42}, {"tier": "pro"}, {"tenant": "x"}, {"steps": 7}):
        assert build(**other).body_hash != first.body_hash


def test_a_drawn_seed_is_no_part_of_the_body() -> None:
    def with_seed(seed: int) -> VideoRequest:
        return build(seed=seed).request

    assert body_hash(with_seed(1), seed_given=False) == body_hash(with_seed(2), seed_given=False)
    assert body_hash(with_seed(1), seed_given=True) != body_hash(with_seed(2), seed_given=True)


def test_the_body_hash_is_stable_across_releases() -> None:
    assert build(seed=1).body_hash == "364b04e98808ab6a35ac3918104fbf8aa924b0b75b81667cb3935ea980104a77"
