"""What makes a method of the in-memory store an atomic step, as a Lua script is one in Redis."""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from callsheet.store import rules

Verb = TypeVar("Verb", bound=Callable[..., Any])


class Steps:
    """One step at a time, each at one time of the clock (``self._now``)."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._now = 0.0
        self._lock = threading.RLock()
        self._answers: dict[str, Any] = {}
        self._answered: deque[tuple[float, str]] = deque()  # (when to forget, op)

    def _begin_step(self) -> None:
        """Read the clock and forget what is past its time."""
        self._now = rules.micro(self._clock())
        while self._answered and self._answered[0][0] <= self._now:
            self._answers.pop(self._answered.popleft()[1], None)

    def _answered_before(self, op: str) -> bool:
        return op in self._answers

    def _answer_once(self, op: str, verb: Callable[[], Any]) -> Any:
        rules.check_op(op)
        if op not in self._answers:
            self._answers[op] = verb()
            self._answered.append((self._now + rules.OP_TTL_S, op))
        return copy.copy(self._answers[op])


def atomic(verb: Verb) -> Verb:
    """Under the lock, at one time of the clock."""

    @wraps(verb)
    def step(self: Steps, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            self._begin_step()
            return verb(self, *args, **kwargs)

    return cast(Verb, step)


def once(verb: Verb) -> Verb:
    """Atomic, and a repeat of its ``op`` gets the first answer. An error is no answer."""

    @wraps(verb)
    def step(self: Steps, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            self._begin_step()
            return self._answer_once(kwargs["op"], lambda: verb(self, *args, **kwargs))

    return cast(Verb, step)
