"""An mp4 is decoded again and compared with the frames that went in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from callsheet.errors import StorageError
from callsheet.workers.contact_sheet import read_frames
from callsheet.workers.encode import Encoding, encode_mp4
from callsheet.workers.frames import Frames
from tests.support.full_disk import full_disk

pytestmark = pytest.mark.torch


def gradient(count: int = 6, height: int = 48, width: int = 64) -> Frames:
    rows, columns = np.mgrid[0:height, 0:width]
    frames = [
        np.stack([columns * 255 / width, rows * 255 / height, np.full_like(rows, 40 * index)], -1)
        for index in range(count)
    ]
    return np.stack(frames).astype(np.uint8)


def facts(path: Path) -> Any:
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        codec = stream.codec_context
        return {
            "codec": stream.codec.name,
            "pixel_format": codec.pix_fmt,
            "size": (codec.width, codec.height),
            "fps": float(stream.average_rate),
            "frames": stream.frames,
            "colours": (codec.color_primaries, codec.color_trc, codec.colorspace, codec.color_range),
            "streams": len(container.streams),
        }


def test_the_film_is_what_a_browser_plays(tmp_path: Path) -> None:
    encoding = encode_mp4(gradient(), 8, tmp_path / "film.mp4")
    assert facts(tmp_path / "film.mp4") == {
        "codec": "h264",
        "pixel_format": "yuv420p",
        "size": (64, 48),
        "fps": 8.0,
        "frames": 6,
        "colours": (1, 1, 1, 1),
        "streams": 1,
    }
    assert encoding == Encoding(8, 64, 48, 18, "veryfast", 0, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["film.mp4"]


def test_pictures_and_their_order_survive(tmp_path: Path) -> None:
    frames = gradient()
    encode_mp4(frames, 8, tmp_path / "film.mp4")
    decoded = read_frames(tmp_path / "film.mp4")
    assert decoded.shape == frames.shape
    assert np.abs(decoded.astype(int) - frames).mean() < 4


@pytest.mark.parametrize("colour", [(255, 255, 255), (0, 0, 0), (255, 0, 0), (0, 255, 0), (0, 0, 255)])
def test_colours_survive(tmp_path: Path, colour: tuple[int, int, int]) -> None:
    frames = np.full((2, 32, 32, 3), colour, np.uint8)
    encode_mp4(frames, 8, tmp_path / "film.mp4")
    with av.open(str(tmp_path / "film.mp4")) as container:
        picture = next(container.decode(video=0)).reformat(format="rgb24", src_colorspace="ITU709")
    assert np.abs(picture.to_ndarray().astype(int) - colour).max() < 12


@pytest.mark.parametrize(("height", "width"), [(31, 33), (32, 33), (31, 32), (2, 3)])
def test_odd_sizes_are_padded_to_even_by_the_edge_and_it_is_told(
    tmp_path: Path, height: int, width: int
) -> None:
    encoding = encode_mp4(gradient(3, height, width), 8, tmp_path / "film.mp4")
    assert (encoding.width - width, encoding.height - height) == (width % 2, height % 2)
    assert (encoding.padded_right, encoding.padded_bottom) == (width % 2, height % 2)
    assert facts(tmp_path / "film.mp4")["size"] == (encoding.width, encoding.height)


@pytest.mark.parametrize("fps", [1, 8, 16, 24, 25, 30, 60])
def test_rates_are_kept(tmp_path: Path, fps: int) -> None:
    encode_mp4(gradient(), fps, tmp_path / "film.mp4")
    assert facts(tmp_path / "film.mp4")["fps"] == fps


def test_one_frame_is_a_film(tmp_path: Path) -> None:
    encode_mp4(gradient(1), 8, tmp_path / "film.mp4")
    assert read_frames(tmp_path / "film.mp4").shape == (1, 48, 64, 3)


def test_playing_can_begin_before_the_whole_file_is_there(tmp_path: Path) -> None:
    encode_mp4(gradient(), 8, tmp_path / "film.mp4")
    data = (tmp_path / "film.mp4").read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")


def test_quality_settings_are_used(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (4, 64, 64, 3), dtype=np.uint8)
    for crf, preset in ((18, "veryfast"), (45, "veryfast"), (18, "ultrafast")):
        encode_mp4(noise, 8, tmp_path / f"{crf}-{preset}.mp4", crf=crf, preset=preset)
    good, poor, quick = (
        (tmp_path / f"{name}.mp4").stat().st_size for name in ("18-veryfast", "45-veryfast", "18-ultrafast")
    )
    assert poor < good / 2
    assert quick != good


@pytest.mark.parametrize(
    "frames",
    [
        np.zeros((0, 32, 32, 3), np.uint8),
        np.zeros((2, 32, 32, 4), np.uint8),
        np.zeros((32, 32, 3), np.uint8),
        np.zeros((2, 32, 32, 3), np.float32),
        np.zeros((2, 0, 32, 3), np.uint8),
    ],
)
def test_what_are_no_frames_is_refused(tmp_path: Path, frames: Any) -> None:
    with pytest.raises(ValueError, match="frames must be"):
        encode_mp4(frames, 8, tmp_path / "film.mp4")
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match=r"file/film\.mp4.*Nothing half-written"):
        encode_mp4(gradient(), 8, tmp_path / "file" / "film.mp4")
    with pytest.raises(StorageError, match=r"missing/film\.mp4"):
        encode_mp4(gradient(), 8, tmp_path / "missing" / "film.mp4")


def test_a_full_disk_keeps_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(b"earlier")
    noise = np.random.default_rng(0).integers(0, 256, (8, 128, 128, 3), dtype=np.uint8)
    with full_disk(50_000), pytest.raises(StorageError, match=r"cannot write .*/film\.mp4.*Free space"):
        encode_mp4(noise, 8, tmp_path / "film.mp4")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"earlier"]
