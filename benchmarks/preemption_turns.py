"""Two processes that make films in turns, so that both see the same machine.

A shared machine computes the same film in 72 s and, a minute later, in 79 s. Two films after one another
tell that and nothing else. Here one of the two processes is stopped (SIGSTOP) whenever the other works, and
each is timed by its own turns.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Self

from callsheet.processes.shim import die_with_parent

TURN_S = 2.0  # a few steps: short beside the machine's moods, long beside a save
READY_S = 300.0
END_S = 5.0

#: Made in the process itself: takes a film's arguments, makes it, answers what is to be known of it.
Make = Callable[[dict[str, Any]], Any]


class Studio:
    """A process that makes one film after another, and stands still in between. A context manager (Linux).

    Ends with the thread that made it.
    """

    def __init__(self, open_: Callable[..., Make], *args: Any) -> None:
        self._pipe, theirs = get_context("spawn").Pipe()
        self._process = get_context("spawn").Process(target=_serve, args=(theirs, open_, args), daemon=True)
        self._process.start()
        theirs.close()

    def make(self, film: dict[str, Any]) -> Any:
        """One film, without turns. Raises EOFError when the process dies, TimeoutError."""
        self._pipe.send(film)
        if not self._pipe.poll(READY_S):
            raise TimeoutError(f"no film within {READY_S:.0f} s")
        return self._pipe.recv()

    def begin(self, film: dict[str, Any]) -> None:
        """Ask for a film that is made in turns."""
        self._signal(signal.SIGSTOP)
        self._pipe.send(film)

    def turn(self, seconds: float) -> tuple[float, bool]:
        """Work so long, or until the film is made. Answers the time that it took, and whether it is."""
        began = time.monotonic()
        self._signal(signal.SIGCONT)
        made = self._pipe.poll(seconds)
        if not made:
            self._signal(signal.SIGSTOP)
        return time.monotonic() - began, made

    def answer(self) -> Any:
        """What is to be known of the film that was made in turns."""
        return self._pipe.recv()

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self._process.pid is not None
        return self._process.pid

    def _signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._signal(signal.SIGCONT)
        self._pipe.close()  # it ends by itself, and tidies up
        self._process.join(END_S)
        self._process.kill()
        self._process.join()


def in_turns(studios: tuple[Studio, Studio], film: dict[str, Any]) -> list[tuple[Any, float]]:
    """Both make the film, the first one beginning. Answers of each what it says, and its turns' seconds."""
    for studio in studios:
        studio.begin(film)
    took = dict.fromkeys(studios, 0.0)
    working = list(studios)
    while working:
        for studio in tuple(working):
            seconds, made = studio.turn(TURN_S)
            took[studio] += seconds
            if made:
                working.remove(studio)
    return [(studio.answer(), took[studio]) for studio in studios]


def _serve(pipe: Connection, open_: Callable[..., Make], args: tuple[Any, ...]) -> None:
    die_with_parent()  # who stands still sees no end of file
    make = open_(*args)
    with suppress(EOFError):
        while True:
            pipe.send(make(pipe.recv()))
