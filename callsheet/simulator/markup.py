"""Pieces of an HTML page: escaped text, tables, legends, figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

TEXTS = ("policy", "tier")  # columns of words; all others hold numbers

COLOURS = 8  # of lines and bands; page_style.py has them


def section(title: str, about: str, *parts: str) -> str:
    """A section of the page: a heading, what is to be seen, plots and tables."""
    return f"<section><h2>{escape(title)}</h2><p>{escape(about)}</p>{''.join(parts)}</section>"


def figures(drawn: Iterable[tuple[str, str]]) -> str:
    """Plots side by side where there is room: caption and SVG of each."""
    each = (f"<figure><figcaption>{escape(caption)}</figcaption>{svg}</figure>" for caption, svg in drawn)
    return f'<div class="plots">{"".join(each)}</div>'


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows under columns; numbers stand right. It scrolls by itself where the screen is narrow."""
    words = [name in TEXTS for name in columns]
    head = "".join(_cell("th", name, word) for name, word in zip(columns, words, strict=True))
    body = "".join(
        f"<tr>{''.join(_cell('td', cell, word) for cell, word in zip(row, words, strict=True))}</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def line_legend(keys: Iterable[tuple[str, str]]) -> str:
    """What each line is: name and class."""
    mark = '<line class="line {}" x1="0" x2="26" y1="5" y2="5"/>'
    return _legend((name, mark.format(kind)) for name, kind in keys)


def band_legend(keys: Iterable[tuple[str, str]]) -> str:
    """What each band is: name and class."""
    mark = '<rect class="band {}" x="7" y="0" width="12" height="10"/>'
    return _legend((name, mark.format(kind)) for name, kind in keys)


def _legend(marks: Iterable[tuple[str, str]]) -> str:
    items = (
        f'<li><svg class="key" viewBox="0 0 26 10" aria-hidden="true">{mark}</svg>{escape(name)}</li>'
        for name, mark in marks
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _cell(tag: str, text: str, word: bool) -> str:
    return f"<{tag}{'' if word else ' class=n'}>{escape(text)}</{tag}>"
