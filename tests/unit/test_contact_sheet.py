"""The picture with frames of each film."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from callsheet.errors import StorageError
from callsheet.workers.contact_sheet import contact_sheet, read_frames
from callsheet.workers.encode import encode_mp4
from callsheet.workers.frames import Frames

pytestmark = pytest.mark.torch


def plain(colour: tuple[int, int, int], count: int = 9, height: int = 36, width: int = 64) -> Frames:
    return np.full((count, height, width, 3), colour, np.uint8)


def picture(png: bytes) -> Image.Image:
    assert png.startswith(b"\x89PNG")
    return Image.open(io.BytesIO(png)).convert("RGB")


def test_a_row_for_each_film_with_its_colours() -> None:
    sheet = picture(contact_sheet([plain((255, 0, 0)), plain((0, 0, 255))], ["red", "blue"]))
    assert sheet.width > 5 * 256
    pixels = np.asarray(sheet)
    red = np.argwhere((pixels == (255, 0, 0)).all(-1))
    blue = np.argwhere((pixels == (0, 0, 255)).all(-1))
    assert len(red) == len(blue) == 5 * 256 * 144
    assert red[:, 0].max() < blue[:, 0].min()


def test_first_and_last_frame_are_shown() -> None:
    film = np.concatenate([plain((255, 0, 0), 1), plain((9, 9, 9), 7), plain((0, 0, 255), 1)])
    pixels = np.asarray(picture(contact_sheet([film], ["film"])))
    red, blue = (np.argwhere((pixels == colour).all(-1)) for colour in ((255, 0, 0), (0, 0, 255)))
    assert red[:, 1].max() < blue[:, 1].min()


def test_the_label_is_drawn_and_the_sheet_is_wide_enough_for_it() -> None:
    narrow = picture(contact_sheet([plain((9, 9, 9), 1, 144, 10)], ["x"]))
    wide = picture(
        contact_sheet([plain((9, 9, 9), 1, 144, 10)], ["a rather long label, with emoji 🎬 and RTL مرحبا"])
    )
    assert wide.width > narrow.width + 100
    assert (np.asarray(wide)[:40].max(-1) > 150).any()


@pytest.mark.parametrize("count", [1, 2, 5, 6])
def test_short_films_show_each_frame_once(count: int) -> None:
    sheet = picture(contact_sheet([plain((255, 0, 0), count)], ["film"]))
    assert (np.asarray(sheet) == (255, 0, 0)).all(-1).sum() == min(count, 5) * 256 * 144


def test_films_may_be_files(tmp_path: Path) -> None:
    encode_mp4(plain((250, 250, 250)), 8, tmp_path / "film.mp4")
    assert (np.asarray(picture(contact_sheet([tmp_path / "film.mp4"], ["film"]))) > 240).all(
        -1
    ).sum() > 100_000


def test_a_file_that_is_no_film_is_named(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(b"no film")
    for path in (tmp_path / "film.mp4", tmp_path / "missing.mp4"):
        with pytest.raises(StorageError, match=path.name):
            read_frames(path)


@pytest.mark.parametrize(("films", "labels"), [([], []), ([plain((0, 0, 0))], []), ([], ["x"])])
def test_a_label_for_each_film(films: list[Frames | Path], labels: list[str]) -> None:
    with pytest.raises(ValueError, match="label"):
        contact_sheet(films, labels)
