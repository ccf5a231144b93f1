"""The log of several processes as one, with a name column."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterable
from typing import TextIO

SEPARATOR = " | "
COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)  # ANSI foregrounds; red stays free for trouble
LONGEST_LINE = 64 * 1024  # bytes; a longer one is cut into several


class LineBuffer:
    """Cuts a stream of bytes into lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The lines that are complete now."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        while len(self._rest) > LONGEST_LINE:
            lines.append(self._rest[:LONGEST_LINE])
            self._rest = self._rest[LONGEST_LINE:]
        return [_text(line) for line in lines]

    def flush(self) -> list[str]:
        """What is left of an unfinished line, at the end of the stream."""
        rest, self._rest = self._rest, b""
        return [_text(rest)] if rest else []


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").rstrip("\r")


def wants_colour(stream: TextIO) -> bool:
    """Whether ANSI colours are welcome: a terminal, and NO_COLOR (no-color.org) not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


class Printer:
    """Writes ``name | text`` lines to one stream; names get a column and, on a terminal, a colour each."""

    def __init__(
        self,
        names: Iterable[str],
        *,
        stream: TextIO | None = None,
        colour: bool | None = None,
        quiet: bool = False,
    ) -> None:
        """``quiet`` leaves out what children write; :meth:`say` is always heard."""
        self._stream = stream if stream is not None else sys.stderr
        self._colour = wants_colour(self._stream) if colour is None else colour
        self._quiet = quiet
        self._colours: dict[str, int] = {}
        self._width = 0
        for name in names:
            self._meet(name)

    def line(self, name: str, text: str, *, nested: bool = False) -> None:
        """One line that a child wrote; ``nested``: it starts with a name column of its own."""
        if nested and SEPARATOR in text:
            name, _, text = text.partition(SEPARATOR)
            name = name.strip()
        if not self._quiet:
            self._write(name, text)

    def say(self, name: str, text: str) -> None:
        """One line of the supervisor itself."""
        self._write(name, text)

    def _meet(self, name: str) -> None:
        self._colours.setdefault(name, COLOURS[len(self._colours) % len(COLOURS)])
        self._width = max(self._width, len(name))

    def _write(self, name: str, text: str) -> None:
        self._meet(name)
        column = f"{name:<{self._width}}{SEPARATOR}"
        if self._colour:
            column = f"\x1b[{self._colours[name]}m{column}\x1b[0m"
        try:
            self._stream.write(f"{column}{text}\n")
            self._stream.flush()
        except (OSError, ValueError):
            pass  # nobody reads the log any more; the processes matter more than their log


class Tail:
    """The last lines of one child, for the message when it fails."""

    def __init__(self, lines: int = 8) -> None:
        self._lines: deque[str] = deque(maxlen=lines)

    def add(self, line: str) -> None:
        """Remember a line, forget the oldest."""
        if line.strip():
            self._lines.append(line)

    def __str__(self) -> str:
        return "\n".join(f"    {line}" for line in self._lines)
