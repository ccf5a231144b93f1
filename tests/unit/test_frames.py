"""From what a pipeline returns to frames, and their hash."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from callsheet.errors import JobFailed
from callsheet.workers.frames import frames_sha256, to_frames
from tests.support.tiny import tiny_request

pytestmark = pytest.mark.torch

REQUEST = tiny_request(frames=3, width=8, height=4)


def video(value: float = 0.5, shape: tuple[int, ...] = (3, 3, 4, 8)) -> torch.Tensor:
    return torch.full(shape, value)


def test_pixels_are_rounded_not_cut() -> None:
    levels = torch.linspace(0, 1, 3 * 3 * 4 * 8).reshape(3, 3, 4, 8)
    frames = to_frames(levels, REQUEST)
    assert frames.dtype == np.uint8
    assert frames.shape == (3, 4, 8, 3)
    assert frames.flags["C_CONTIGUOUS"]
    np.testing.assert_array_equal(frames, np.rint(levels.numpy() * 255).transpose(0, 2, 3, 1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_any_float_type_reaches_white_and_black(dtype: torch.dtype) -> None:
    assert (to_frames(video(1.0).to(dtype), REQUEST) == 255).all()
    assert (to_frames(video(0.0).to(dtype), REQUEST) == 0).all()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_fails_the_job(bad: float) -> None:
    broken = video()
    broken[1, 2, 3, 4] = bad
    with pytest.raises(JobFailed, match=r"not numbers.*no film was stored.*seed"):
        to_frames(broken, REQUEST)


@pytest.mark.parametrize(
    "shape", [(2, 3, 4, 8), (4, 3, 4, 8), (3, 3, 8, 4), (3, 4, 4, 8), (3, 4, 8), (0, 3, 4, 8)]
)
def test_another_shape_than_asked_for_fails_the_job_with_both(shape: tuple[int, ...]) -> None:
    with pytest.raises(JobFailed, match=r"3 x 3 x 4 x 8.*frame_stride") as raised:
        to_frames(video(shape=shape), REQUEST)
    assert " x ".join(map(str, shape)) in str(raised.value)


def test_the_hash_tells_pixels_and_shapes_apart() -> None:
    frames = np.arange(2 * 4 * 6 * 3, dtype=np.uint8).reshape(2, 4, 6, 3)
    other = frames.copy()
    other[1, 3, 5, 2] ^= 1
    hashes = {frames_sha256(frames), frames_sha256(other), frames_sha256(frames.reshape(2, 6, 4, 3))}
    assert len(hashes) == 3
    assert all(len(digest) == 64 for digest in hashes)


def test_the_hash_does_not_depend_on_how_the_array_lies_in_memory() -> None:
    frames = np.arange(2 * 4 * 6 * 3, dtype=np.uint8).reshape(2, 4, 6, 3)
    assert frames_sha256(np.asfortranarray(frames)) == frames_sha256(frames)
    assert frames_sha256(np.repeat(frames, 2, axis=0)[::2]) == frames_sha256(frames)
