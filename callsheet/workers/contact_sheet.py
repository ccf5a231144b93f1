"""One picture with a few frames of each film, to see at a glance what was rendered."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import av
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from callsheet.errors import StorageError
from callsheet.workers.frames import Frames

_THUMB_HEIGHT = 144  # pixels
_MARGIN = 16
_GAP = 6
_LABEL_HEIGHT = 26
_BACKGROUND, _INK = (24, 24, 27), (236, 236, 236)


def contact_sheet(films: Sequence[Frames | Path], labels: Sequence[str], *, per_film: int = 5) -> bytes:
    """A PNG with one row for each film: its label, and below it ``per_film`` frames from first to last.

    Films are frame arrays or mp4 files. Raises ValueError (no film, or not a label for each), StorageError
    (an mp4 that cannot be read).
    """
    if not films or len(films) != len(labels):
        raise ValueError(f"{len(films)} films, {len(labels)} labels: give one film or more, a label each")
    rows = [_row(_pick(film, per_film), label) for film, label in zip(films, labels, strict=True)]
    height = sum(row.height for row in rows) + _MARGIN * (len(rows) + 1)
    sheet = Image.new("RGB", (max(row.width for row in rows) + 2 * _MARGIN, height), _BACKGROUND)
    top = _MARGIN
    for row in rows:
        sheet.paste(row, (_MARGIN, top))
        top += row.height + _MARGIN
    file = io.BytesIO()
    sheet.save(file, "PNG")
    return file.getvalue()


def read_frames(path: Path) -> Frames:
    """All frames of an mp4. Raises StorageError."""
    try:
        with av.open(str(path)) as container:
            pictures = [picture.to_ndarray(format="rgb24") for picture in container.decode(video=0)]
    except (av.error.FFmpegError, OSError, IndexError) as error:  # IndexError: no video in it
        raise StorageError(f"cannot read the film {path}: {error}. Download or render it again.") from error
    return np.stack(pictures).astype(np.uint8, copy=False)


def _pick(film: Frames | Path, count: int) -> list[Frames]:
    """Frames from first to last at equal distances; each once in a short film."""
    frames = read_frames(film) if isinstance(film, Path) else film
    places = np.unique(np.linspace(0, len(frames) - 1, min(count, len(frames))).round().astype(int))
    return [frames[place] for place in places]


def _row(frames: list[Frames], label: str) -> Image.Image:
    thumbs = [_thumb(frame) for frame in frames]
    font = ImageFont.load_default(size=16)
    width = max(sum(thumb.width + _GAP for thumb in thumbs) - _GAP, int(font.getlength(label)) + 1)
    row = Image.new("RGB", (width, _LABEL_HEIGHT + _THUMB_HEIGHT), _BACKGROUND)
    ImageDraw.Draw(row).text((0, 0), label, font=font, fill=_INK)
    left = 0
    for thumb in thumbs:
        row.paste(thumb, (left, _LABEL_HEIGHT))
        left += thumb.width + _GAP
    return row


def _thumb(frame: Frames) -> Image.Image:
    height, width = frame.shape[:2]
    size = (max(1, round(width * _THUMB_HEIGHT / height)), _THUMB_HEIGHT)
    smooth = Image.Resampling.LANCZOS if height > _THUMB_HEIGHT else Image.Resampling.BICUBIC
    return Image.fromarray(frame).resize(size, smooth)
