"""One run of one pipeline, which can be saved after any step, and which may begin at a saved one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch

from callsheet.workers.memory import is_shortage
from callsheet.workers.replay.codec import Node, UnknownType
from callsheet.workers.replay.denoisers import Denoisers, keeps_state
from callsheet.workers.replay.patches import patched
from callsheet.workers.replay.prompts import Prompts
from callsheet.workers.replay.randomness import generators_in, read_states, write_states
from callsheet.workers.replay.refusals import NotReplayable
from callsheet.workers.replay.schedulers import Schedulers
from callsheet.workers.replay.snapshot import Snapshot
from callsheet.workers.replay.steps import Record

StepEnded = Callable[[Any, int, Any, dict[str, Any]], dict[str, Any]]  # a pipeline's callback_on_step_end
CaughtUp = Callable[[Any, int], None]  # (pipeline, finished steps)

_EMPTY = Snapshot({}, {"steps": [], "schedulers": [], "prompts": [], "denoisers": {}}, 0)


class Replay:
    """Runs ``pipe(**arguments)`` once, from the start or from ``resume``.

    ``arguments`` are those of the first run, with generators freshly seeded. While it runs, the pipeline's
    schedulers, models, ``encode_prompt`` and ``progress_bar`` are watched; afterwards all are as before,
    whatever happened. Nothing that makes a run impossible to save disturbs it: :meth:`snapshot` says so.
    """

    def __init__(self, pipe: Any, arguments: dict[str, Any], resume: Snapshot | None = None) -> None:
        self._pipe, self._arguments, self._resume = pipe, arguments, resume or _EMPTY
        self._device = torch.device(getattr(pipe, "_execution_device", "cpu"))
        self._generators = generators_in(arguments)
        components = getattr(pipe, "components", {})
        meta, tensors = self._resume.meta, self._resume.tensors
        self._schedulers = Schedulers(components)
        self._denoisers = Denoisers(components, meta["denoisers"])
        self._steps = Record(meta["steps"], tensors)
        self._prompts = Prompts(meta["prompts"], tensors, self._device)
        self._initial: dict[str, torch.Tensor] = {}
        self._began_at = self._resume.step
        self._done = 0  # finished iterations
        self._stopped: Exception | None = None  # what ``caught_up`` raised
        self._between = False  # inside the step-end callback, where a snapshot can be taken
        self._fault = keeps_state(components) or (
            "" if not self._schedulers.missing else "it has no scheduler"
        )

    @property
    def replaying(self) -> bool:
        """Whether recorded steps stand in for computed ones now."""
        return self._done < self._resume.step

    def run(self, step_ended: StepEnded, caught_up: CaughtUp | None = None) -> Any:
        """The pipeline's output.

        ``step_ended`` is called after every computed step and ``caught_up`` once, before the first of them in
        a resumed run; what they raise comes out. Raises NotReplayable when ``resume`` does not fit this run,
        and whatever the pipeline raises.
        """
        if self._resume.step:
            if self._fault:
                raise self._refusal(self._fault)
            write_states(self._states("initial"), self._generators)
        self._initial = read_states(self._generators)
        self._denoisers.standing_in = self.replaying
        callback = functools.partial(self._iteration_ended, step_ended, caught_up)
        trouble = ""
        with self._watched():
            try:
                output = self._pipe(**self._arguments, callback_on_step_end=callback)
            except Exception as error:
                if not self._unfit(error):
                    raise
                trouble = f"{type(error).__name__}: {error}"
        if trouble:  # outside of except, since a traceback keeps tensors alive
            raise NotReplayable(
                f"the checkpoint does not fit this run ({trouble}); the job starts again at step 0."
            )
        if self.replaying:
            raise NotReplayable(
                f"the checkpoint is at step {self._resume.step}, but this run has only {self._done}; "
                "the job starts again at step 0."
            )
        return output

    def snapshot(self) -> Snapshot:
        """The step that has just ended: copies of its tensors on the CPU. To be called inside ``step_ended``.

        Raises NotReplayable, with the reason, for a pipeline that cannot be saved.
        """
        reason = self._why_not()
        if reason:
            raise self._refusal(reason)
        tensors = dict(self._prompts.tensors)
        for when, states in (("initial", self._initial), ("current", read_states(self._generators))):
            tensors |= {f"random.{when}.{name}": state for name, state in states.items()}
        meta = {
            "steps": self._steps.pack(tensors),
            "schedulers": self._pack_schedulers(tensors),
            "prompts": list(self._prompts.nodes),
            "denoisers": {name: list(nodes) for name, nodes in self._denoisers.shapes.items()},
        }
        return Snapshot(tensors, meta, self._done)

    def set_up(self) -> None:
        """A scheduler's ``set_timesteps`` is about to be called (see ``schedulers.Steps``)."""
        if self._done or self._steps.begun:
            self._several_loops()

    def step(self, scheduler: Any, real: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Step for real, or answer what was recorded (see ``schedulers.Steps``)."""
        index = self._schedulers.index(scheduler)
        self._denoisers.since_step = False
        if self.replaying:
            return self._steps.replay(index, self._device)
        result = real(scheduler, *args, **kwargs)
        self._steps.add(index, result)
        return result

    @contextmanager
    def _watched(self) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(self._schedulers.watched(self))
            stack.enter_context(self._denoisers.watched())
            stack.enter_context(self._prompts.over(self._pipe))
            bar = getattr(self._pipe, "progress_bar", None)
            if bar is not None:
                stack.enter_context(patched(self._pipe, "progress_bar", self._loop_begins(bar)))
            yield

    def _loop_begins(self, bar: Callable[..., Any]) -> Callable[..., Any]:
        """Every diffusers pipeline opens its progress bar where its denoising loop begins."""

        @functools.wraps(bar)
        def progress_bar(*args: Any, **kwargs: Any) -> Any:
            if self._done or self._steps.begun:
                self._several_loops()
            self._denoisers.new_loop()
            return bar(*args, **kwargs)

        return progress_bar

    def _several_loops(self) -> None:
        self._fault = self._fault or "it has several denoising loops"
        if self.replaying:
            raise NotReplayable("the checkpoint's run had one denoising loop, this one has several.")

    def _iteration_ended(
        self,
        step_ended: StepEnded,
        caught_up: CaughtUp | None,
        pipe: Any,
        index: int,
        timestep: Any,
        tensors: dict[str, Any],
    ) -> dict[str, Any]:
        if self.replaying:
            self._end_replayed(caught_up)
            return tensors
        self._steps.end()
        self._denoisers.end_iteration()
        self._done += 1
        if index + 1 != self._done:
            self._fault = self._fault or "it does not call back once after each iteration"
        self._between = True
        try:
            return step_ended(pipe, index, timestep, tensors)
        finally:
            self._between = False

    def _end_replayed(self, caught_up: CaughtUp | None) -> None:
        self._steps.end_replayed()
        self._denoisers.end_iteration()
        self._done += 1
        if self.replaying:
            return
        meta, tensors = self._resume.meta, self._resume.tensors
        self._schedulers.restore(meta["schedulers"], tensors, self._device)
        write_states(self._states("current"), self._generators)
        self._denoisers.standing_in = False
        self._resume = replace(self._resume, tensors={})
        if caught_up is not None:
            try:
                caught_up(self._pipe, self._done)
            except Exception as error:
                self._stopped = error
                raise

    def _unfit(self, error: Exception) -> bool:
        """Whether an error says that the checkpoint does not fit: before a resumed run computed a step."""
        known = isinstance(error, NotReplayable) or error is self._stopped or is_shortage(error)
        return not known and self._began_at > 0 and self._done <= self._began_at

    def _states(self, when: str) -> dict[str, torch.Tensor]:
        """Random states of the checkpoint, ``initial`` or ``current``."""
        prefix = f"random.{when}."
        return {
            name.removeprefix(prefix): tensor
            for name, tensor in self._resume.tensors.items()
            if name.startswith(prefix)
        }

    def _pack_schedulers(self, tensors: dict[str, torch.Tensor]) -> list[Node]:
        try:
            return self._schedulers.pack(tensors)
        except UnknownType as error:
            reason = f"a scheduler holds what cannot be written down: {error}"
        raise self._refusal(reason)

    def _refusal(self, reason: str) -> NotReplayable:
        return NotReplayable(
            f"{type(self._pipe).__name__} cannot be saved: {reason}. Its jobs run, but begin at step 0 "
            "when they are preempted or lose their worker."
        )

    def _why_not(self) -> str:
        """Why the run cannot be saved here; "" when it can."""
        if not self._between:
            return "a snapshot can only be taken while a computed step ends"
        fault = self._fault or self._steps.fault or self._denoisers.fault
        if not fault and not self._denoisers.shapes:
            return "no model was seen at work between the scheduler's steps"
        return fault
