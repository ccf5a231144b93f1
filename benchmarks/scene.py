"""A film to encode that is like a film: textured as photographs are, and everything in it moves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Pictures = NDArray[np.uint8]
Plane = NDArray[np.float32]

PAN = (2, 3)  # pixels per frame that the background moves down and right
GRAIN = 1.5  # standard deviation of each frame's noise, in levels of 256
CHANNEL_SHIFT = 37  # pixels between the textures of two colours, so that the film is not grey


def scene(frames: int, width: int, height: int, *, seed: int = 0) -> Pictures:
    """(frames, height, width, 3): a background that pans, a disc of another texture that crosses, grain."""
    random = np.random.default_rng(seed)
    background = texture(height + PAN[0] * frames, width + PAN[1] * frames, random)
    thing = texture(height, width, random)
    film = np.empty((frames, height, width, 3), np.uint8)
    for index in range(frames):
        top, left = (step * index for step in PAN)
        plane = background[top : top + height, left : left + width].copy()
        disc = _disc(width, height, index / max(frames - 1, 1))
        plane[disc] = np.roll(thing, (-5 * index, 4 * index), (0, 1))[disc]
        film[index] = _coloured(plane, random)
    return film


def texture(height: int, width: int, random: np.random.Generator) -> Plane:
    """Noise whose amplitude falls as 1/f, as in natural images; levels 0 .. 255."""
    down = np.fft.fftfreq(height)[:, None]
    right = np.fft.rfftfreq(width)[None, :]
    frequency = np.maximum(np.hypot(down, right), 1 / max(height, width))
    white = np.fft.rfft2(random.standard_normal((height, width)))
    plane: Any = np.fft.irfft2(white / frequency, s=(height, width))
    levels: Plane = np.clip(128 + 50 * plane / plane.std(), 0, 255).astype(np.float32)
    return levels


def _disc(width: int, height: int, progress: float) -> NDArray[np.bool_]:
    y, x = np.ogrid[:height, :width]
    inside: NDArray[np.bool_] = (x - width * progress) ** 2 + (y - height / 2) ** 2 < (height / 4) ** 2
    return inside


def _coloured(plane: Plane, random: np.random.Generator) -> Pictures:
    channels = np.stack([np.roll(plane, CHANNEL_SHIFT * c, axis=1) for c in range(3)], axis=-1)
    mixed = 0.7 * plane[..., None] + 0.3 * channels
    noisy = mixed + random.normal(0, GRAIN, plane.shape)[..., None]
    return np.clip(noisy, 0, 255).astype(np.uint8)
