"""Runs children until it is told to stop, one of them gives up, or none is left.

Everything happens in the main thread: Linux' PDEATHSIG is tied to the *thread* that forked, and the main
thread lives as long as the process. Only ``Child.ready`` callables run beside it, so they must answer in
bounded time.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Sequence

from callsheet.errors import CallsheetError
from callsheet.processes.child import Child
from callsheet.processes.guard import Guard
from callsheet.processes.keeper import Keeper
from callsheet.processes.output import Printer


class Supervisor:
    """Starts children in order of need, keeps them running, and leaves nothing behind."""

    def __init__(
        self,
        children: Sequence[Child],
        *,
        name: str,
        printer: Printer | None = None,
        pdeathsig: bool | None = None,
    ) -> None:
        """``name``: column of its own words. ``pdeathsig``: see ``Guard``."""
        _check(children)
        self.children = tuple(children)
        self.name = name
        self.printer = printer or Printer([name, *(child.name for child in children)])
        self._pdeathsig = pdeathsig

    def run(self, *, on_ready: Callable[[], None] | None = None) -> None:
        """Run until SIGINT, SIGTERM or SIGHUP; ``on_ready`` is called once, when every child has been ready.

        Returns when all children were asked to stop and have, or have ended in order by themselves. Raises
        CallsheetError when an essential child gave up or did not get ready in time, or all others gave up.
        Only in the main thread: signals and PDEATHSIG need it.
        """
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("Supervisor.run works in the main thread only")
        guard = Guard(pdeathsig=self._pdeathsig)
        try:
            asyncio.run(_Run(self, guard).main(on_ready))
        finally:
            guard.close()


def _check(children: Sequence[Child]) -> None:
    names: set[str] = set()
    needable: set[str] = set()  # what gives up without ending the run cannot be waited for
    for child in children:
        if child.name in names or not needable.issuperset(child.after):
            raise ValueError(f"{child.name}: names are unique, and `after` names earlier essential children")
        names.add(child.name)
        needable.update([child.name] if child.essential else [])


class _Run:
    """One ``Supervisor.run``: the state that its keepers share."""

    def __init__(self, supervisor: Supervisor, guard: Guard) -> None:
        self.name = supervisor.name
        self.printer = supervisor.printer
        self.guard = guard
        self.hurry = asyncio.Event()
        self._stop = asyncio.Event()
        self._failure: BaseException | None = None
        self._keepers = {child.name: Keeper(child, self) for child in supervisor.children}

    async def main(self, on_ready: Callable[[], None] | None) -> None:
        """Everything, from the first start to the last burial."""
        self._listen()
        keepers = list(self._keepers.values())
        lives = [self.spawn(keeper.live()) for keeper in keepers]
        others = [self.spawn(self._announce(on_ready)), self.spawn(self._stop_when_empty())]
        await self._stop.wait()
        await asyncio.gather(*(keeper.end() for keeper in reversed(keepers)))
        for task in others:
            task.cancel()
        await asyncio.wait([*lives, *others])
        if self._failure is not None:
            raise self._failure

    def keeper(self, name: str) -> Keeper:
        """The keeper of a child."""
        return self._keepers[name]

    def users(self, name: str) -> list[Keeper]:
        """The keepers of the children that need this one."""
        return [keeper for keeper in self._keepers.values() if name in keeper.child.after]

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run something beside; if it raises, everything stops and ``main`` raises it."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._on_done)
        return task

    def fail(self, error: BaseException) -> None:
        """Stop everything and end with this error (the first one counts)."""
        self._failure = self._failure or error
        self._stop.set()

    def say(self, text: str) -> None:
        """A word of the supervisor's own."""
        self.printer.say(self.name, text)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.fail(error)

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._reap)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue  # started by nohup
            loop.add_signal_handler(number, self._on_signal, number)

    def _reap(self) -> None:
        for keeper in self._keepers.values():
            if keeper.process is not None:
                keeper.process.reap()

    def _on_signal(self, number: signal.Signals) -> None:
        if not self._stop.is_set():
            self.say(f"{number.name}: stopping; once more stops in a hurry")
            self._stop.set()
        elif not self.hurry.is_set():
            self.say(f"{number.name}: stopping in a hurry")
            self.hurry.set()

    async def _announce(self, on_ready: Callable[[], None] | None) -> None:
        for keeper in self._keepers.values():
            await keeper.ready_or_over()
        if on_ready is not None and not self._stop.is_set():
            on_ready()

    async def _stop_when_empty(self) -> None:
        for keeper in self._keepers.values():
            await keeper.over.wait()
        gave_up = [name for name, keeper in self._keepers.items() if keeper.gave_up]
        if gave_up and not self._stop.is_set():
            self.fail(CallsheetError(f"No process is left: {', '.join(gave_up)} gave up; the log says why."))
        self._stop.set()
