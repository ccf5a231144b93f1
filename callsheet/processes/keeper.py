"""Keeps one child running, and ends it in order."""

from __future__ import annotations

import asyncio
import re
import signal
from collections import Counter
from collections.abc import Awaitable, Coroutine
from typing import Any, Protocol

from callsheet.errors import CallsheetError
from callsheet.processes.child import Child
from callsheet.processes.guard import Guard
from callsheet.processes.output import Printer, Tail
from callsheet.processes.running import Running

HURRY_S = 1.0  # what is left of every grace after the second Ctrl-C
READY_POLL_S = 0.1


class Run(Protocol):
    """What a keeper needs of the supervisor's run."""

    printer: Printer
    guard: Guard
    hurry: asyncio.Event

    def keeper(self, name: str) -> Keeper:
        """The keeper of a child."""
        ...

    def users(self, name: str) -> list[Keeper]:
        """The keepers of the children that need this one."""
        ...

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run something beside; an error in it stops everything."""
        ...

    def fail(self, error: BaseException) -> None:
        """Stop everything and end with this error."""
        ...

    def say(self, text: str) -> None:
        """A word of the supervisor's own."""
        ...


class Keeper:
    """One child through all its lives."""

    def __init__(self, child: Child, run: Run) -> None:
        self.child = child
        self.process: Running | None = None  # the newest one
        self.over = asyncio.Event()  # it has ended and will not be started again
        self.gave_up = False
        self._run = run
        self._ready = asyncio.Event()  # has been ready once
        self._stopping = asyncio.Event()
        self._tail = Tail()

    async def live(self) -> None:
        """Start it when its needs are ready, and again after each death, until told to stop or hopeless."""
        try:
            if await self._unless_stopping(self._needs_ready()):
                await self._lives()
        finally:
            self.over.set()

    async def ready_or_over(self) -> None:
        """Wait until it has been ready, or never will be."""
        await _first(self._ready.wait(), self.over.wait())

    async def end(self) -> None:
        """Stop it after everything that needs it: the stop signal first, SIGKILL after the grace."""
        for user in self._run.users(self.child.name):
            await user.over.wait()
        self._stopping.set()
        process = self.process
        if process is not None and not process.ended.is_set():
            process.signal(self.child.stop_signal)
            if not await self._ends_in_time(process):
                self._run.say(f"{self.child.name} did not stop in time: SIGKILL")
                process.kill()
        await self.over.wait()

    async def _needs_ready(self) -> None:
        for name in self.child.after:
            await self._run.keeper(name)._ready.wait()

    async def _lives(self) -> None:
        quick_deaths: Counter[bool] = Counter()  # killed by a signal, or not
        while not self._stopping.is_set():
            process = await self._one_life()
            if self._stopping.is_set() or self._left_in_order(process.code):
                return
            if process.age_s < self.child.restart.quick_s:
                quick_deaths[process.code < 0] += 1
            else:
                quick_deaths.clear()
            in_a_row = quick_deaths[process.code < 0]
            what = f"{self.child.name} {_ending(process.code)} after {process.age_s:.1f} s"
            delay_s = self.child.restart.delay_s(in_a_row, process.code)
            if delay_s is None or not self.child.restart.wanted(process.code):
                self._give_up(f"{what}, {in_a_row} times in a row" if in_a_row > 1 else what)
                return
            self._run.say(f"{what}; starting it again in {delay_s:g} s")
            await self._unless_stopping(asyncio.sleep(delay_s))

    async def _one_life(self) -> Running:
        seen = asyncio.Event()
        self.process = process = Running(self.child, self._run.guard, lambda line: self._on_line(line, seen))
        watching = self._run.spawn(self._watch_ready(seen))
        await process.ended.wait()
        watching.cancel()
        return process

    def _left_in_order(self, code: int) -> bool:
        in_order = code == 0 and not self.child.restart.wanted(code)
        if in_order:
            self._run.say(f"{self.child.name} left in order")
        return in_order

    def _on_line(self, line: str, seen: asyncio.Event) -> None:
        self._tail.add(line)
        if self.child.mute is None or not self.child.mute.search(line):
            self._run.printer.line(self.child.name, line, nested=self.child.nested)
        if isinstance(self.child.ready, re.Pattern) and self.child.ready.search(line):
            seen.set()

    async def _watch_ready(self, seen: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(None if self._ready.is_set() else self.child.ready_s):
                await self._until_ready(seen)
        except TimeoutError:
            self._give_up(f"{self.child.name} was not ready within {self.child.ready_s:g} s")
            await self.end()
            return
        if self.child.on_ready is not None:
            self.child.on_ready()
        self._ready.set()

    async def _until_ready(self, seen: asyncio.Event) -> None:
        if isinstance(self.child.ready, re.Pattern):
            await seen.wait()
        elif self.child.ready is not None:
            while not await asyncio.to_thread(self.child.ready):
                await asyncio.sleep(READY_POLL_S)

    def _give_up(self, what: str) -> None:
        self.gave_up = True
        self._stopping.set()
        last = f" Its last lines:\n{self._tail}" if str(self._tail) else " It wrote nothing."
        if self.child.essential:
            self._run.fail(CallsheetError(f"{what}: giving up.{last}"))
        else:
            self._run.say(f"{what}: giving up on it, the others go on")

    async def _ends_in_time(self, process: Running) -> bool:
        """Whether it ends within its grace, which a second Ctrl-C cuts short."""
        try:
            async with asyncio.timeout(self.child.grace_s):
                await _first(process.ended.wait(), self._run.hurry.wait())
            async with asyncio.timeout(min(HURRY_S, self.child.grace_s)):
                await process.ended.wait()
        except TimeoutError:
            return False
        return True

    async def _unless_stopping(self, work: Coroutine[Any, Any, Any]) -> bool:
        """Wait for ``work``, but not beyond the order to stop; whether to go on."""
        await _first(work, self._stopping.wait())
        return not self._stopping.is_set()


async def _first(*works: Awaitable[Any]) -> None:
    """Wait until one of them is done; the others are dropped."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    names = {int(number): number.name for number in signal.Signals}
    return f"was killed by {names.get(-code, f'signal {-code}')}"
