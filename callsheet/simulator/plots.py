"""Plots as inline SVG: lines, and bands that stand on each other. Colours are classes of the page's style."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate

from callsheet.simulator.axes import Axis

WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 54, 20, 10, 44  # margins; axes and their labels stand in them

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Line:
    """One line."""

    name: str
    points: Points
    kind: str  # class: colour and dashes


@dataclass(frozen=True, slots=True)
class Band:
    """One band of a stack."""

    name: str
    heights: Sequence[float]  # at each of the stack's places
    kind: str  # class: colour


def lines(title: str, x: Axis, y: Axis, drawn: Sequence[Line], spans: Points = ()) -> str:
    """Lines over axes; ``spans`` of x are shaded."""
    shades = "".join(_shade(x, begin, end) for begin, end in spans)
    paths = "".join(
        f'<path class="line {line.kind}" d="{_path(x, y, line.points)}">{_hint(line.name)}</path>'
        for line in drawn
        if line.points
    )
    return _frame(title, x, y, shades, paths)


def stack(title: str, x: Axis, y: Axis, places: Sequence[float], bands: Sequence[Band]) -> str:
    """Bands over each other, the first at the bottom."""
    tops = list(accumulate((band.heights for band in bands), _added, initial=[0.0] * len(places)))
    paths = "".join(
        f'<path class="band {band.kind}" d="{_area(x, y, places, low, high)}">{_hint(band.name)}</path>'
        for band, low, high in zip(bands, tops, tops[1:], strict=False)
    )
    return _frame(title, x, y, "", paths)


def _added(below: Sequence[float], heights: Sequence[float]) -> list[float]:
    return [one + other for one, other in zip(below, heights, strict=True)]


def _frame(title: str, x: Axis, y: Axis, behind: str, paths: str) -> str:
    """The whole SVG: grid and labels behind the paths."""
    grid = "".join(_tick_x(x, *tick) for tick in x.ticks()) + "".join(_tick_y(y, *tick) for tick in y.ticks())
    middle = (TOP + HEIGHT - BOTTOM) / 2
    labels = (
        f'<text class="label" x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{HEIGHT - 6}">{escape(x.label)}</text>'
        f'<text class="label" transform="translate(13 {middle:g}) rotate(-90)">{escape(y.label)}</text>'
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{behind}{grid}{paths}{labels}</svg>"
    )


def _tick_x(x: Axis, value: float, text: str) -> str:
    at = _x(x)(value)
    return (
        f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        f'<text class="tick x" x="{at:.1f}" y="{HEIGHT - BOTTOM + 15}">{text}</text>'
    )


def _tick_y(y: Axis, value: float, text: str) -> str:
    at = _y(y)(value)
    return (
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
        f'<text class="tick y" x="{LEFT - 5}" y="{at + 4:.1f}">{text}</text>'
    )


def _shade(x: Axis, begin: float, end: float) -> str:
    left, right = _x(x)(begin), _x(x)(end)
    return (
        f'<rect class="shade" x="{left:.1f}" width="{right - left:.1f}" y="{TOP}" '
        f'height="{HEIGHT - BOTTOM - TOP}"/>'
    )


def _area(x: Axis, y: Axis, places: Sequence[float], low: Sequence[float], high: Sequence[float]) -> str:
    there = list(zip(places, high, strict=True))
    back = list(zip(places, low, strict=True))
    return f"{_path(x, y, [*there, *reversed(back)])}Z" if places else ""


def _path(x: Axis, y: Axis, points: Points) -> str:
    across, up = _x(x), _y(y)
    return "M" + "L".join(f"{across(one):.1f} {up(other):.1f}" for one, other in points)


def _x(axis: Axis) -> Callable[[float], float]:
    return lambda value: LEFT + (WIDTH - LEFT - RIGHT) * axis.place(value)


def _y(axis: Axis) -> Callable[[float], float]:
    return lambda value: HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * axis.place(value)


def _hint(name: str) -> str:
    return f"<title>{escape(name)}</title>"
