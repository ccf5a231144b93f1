"""What is to run: plain data, made by a pure plan."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class RestartWhen(StrEnum):
    """After which endings a child is started again."""

    ALWAYS = "always"  # whatever its exit code
    FAILED = "failed"  # not after exit code 0: it was asked to leave
    NEVER = "never"  # its end is final; a failure still counts as giving up


@dataclass(frozen=True, slots=True)
class Restart:
    """When to start a child again, and how long to wait before."""

    when: RestartWhen = RestartWhen.ALWAYS
    first_s: float = 0.5  # wait after a death
    factor: float = 2.0  # each quick death in a row multiplies the wait
    most_s: float = 30.0  # longest wait
    quick_s: float = 10.0  # a life shorter than this is a quick death
    give_up_after: int = 5  # quick deaths in a row by an exit code
    give_up_after_kills: int = 5  # quick deaths in a row by a signal: mostly somebody else's doing

    def wanted(self, code: int) -> bool:
        """Whether an ending with this exit code (negative: killed by that signal) calls for another start."""
        return self.when is RestartWhen.ALWAYS or (self.when is RestartWhen.FAILED and code != 0)

    def delay_s(self, quick_deaths: int, code: int) -> float | None:
        """Seconds until the next start after so many quick deaths of the kind that ``code`` tells.

        None: give up.
        """
        if quick_deaths >= (self.give_up_after_kills if code < 0 else self.give_up_after):
            return None
        return min(self.first_s * self.factor ** max(quick_deaths - 1, 0), self.most_s)


@dataclass(frozen=True, slots=True)
class Child:
    """One process to supervise."""

    name: str  # its column in the log; unique
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)  # on top of the supervisor's own
    ready: re.Pattern[str] | Callable[[], bool] | None = None  # found in a line, or asked again and again
    ready_s: float = 60.0  # longest time until it is ready; then the supervisor gives up
    on_ready: Callable[[], None] | None = None  # called each time it becomes ready
    after: tuple[str, ...] = ()  # starts once these are ready, stops before they do
    restart: Restart = Restart()
    essential: bool = True  # False: when it gives up, the others go on
    stop_signal: signal.Signals = signal.SIGTERM
    grace_s: float = 10.0  # from the stop signal to SIGKILL
    pass_fds: tuple[int, ...] = ()  # file descriptors that it inherits
    mute: re.Pattern[str] | None = None  # lines that are not worth showing
    nested: bool = False  # a supervisor itself: its lines already carry a name column
