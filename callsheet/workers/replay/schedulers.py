"""The schedulers of one run: which instances step, what their steps returned, what they carry along."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import torch
from diffusers import SchedulerMixin

from callsheet.workers.replay.codec import Node, keep_in, pack, unpack
from callsheet.workers.replay.patches import of_class
from callsheet.workers.replay.refusals import NotReplayable

_CONFIG = "_internal_dict"  # diffusers' own place of a scheduler's configuration, which a run leaves alone


class Steps(Protocol):
    """Who wants to know of scheduler calls."""

    def set_up(self) -> None:
        """``set_timesteps`` is about to be called."""

    def step(self, scheduler: Any, real: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Answers for ``step``, by ``real(scheduler, *args, **kwargs)`` or otherwise."""


class Schedulers:
    """The instances in the order of their first step; some pipelines step with deep copies of a component."""

    def __init__(self, components: Mapping[str, Any]) -> None:
        self._components = [item for item in components.values() if isinstance(item, SchedulerMixin)]
        self.instances: list[Any] = []

    @property
    def missing(self) -> bool:
        """Whether the pipeline has no scheduler at all."""
        return not self._components

    @contextmanager
    def watched(self, steps: Steps) -> Iterator[None]:
        """Lead every ``step`` and ``set_timesteps`` to ``steps``, also those of deep copies."""
        on = [True]
        with ExitStack() as stack:
            stack.callback(on.clear)  # a copy that outlives the run steps by itself again
            for scheduler in self._components:
                stack.enter_context(of_class(scheduler, _watched(type(scheduler), steps, on)))
            yield

    def index(self, scheduler: Any) -> int:
        """Number of an instance, from 0."""
        for at, known in enumerate(self.instances):
            if known is scheduler:
                return at
        self.instances.append(scheduler)
        return len(self.instances) - 1

    def pack(self, tensors: dict[str, torch.Tensor]) -> list[Node]:
        """Every instance's attributes; copies of their tensors go to ``tensors``. Raises UnknownType."""
        leaf = keep_in(tensors)
        return [
            {
                "class": type(scheduler).__name__,
                "attributes": {
                    name: pack(value, f"scheduler.{at}.{name}", leaf)
                    for name, value in vars(scheduler).items()
                    if name != _CONFIG
                },
            }
            for at, scheduler in enumerate(self.instances)
        ]

    def restore(self, saved: list[Node], tensors: Mapping[str, torch.Tensor], device: torch.device) -> None:
        """Give the instances the attributes of a checkpoint. Raises NotReplayable when they are others."""
        here = [type(scheduler).__name__ for scheduler in self.instances]
        there = [node["class"] for node in saved]
        if here != there:
            raise NotReplayable(
                f"the checkpoint's schedulers are {there}, this run's {here}; the job starts again at step 0."
            )
        for scheduler, node in zip(self.instances, saved, strict=True):
            for name, value in node["attributes"].items():
                setattr(scheduler, name, unpack(value, tensors, device))


def _watched(base: type, steps: Steps, on: list[bool]) -> type:
    """A subclass that looks like ``base``. A class, since an attribute would not survive a deep copy."""
    methods: Any = base
    real_step: Callable[..., Any] = methods.step
    real_set: Callable[..., Any] = methods.set_timesteps

    @functools.wraps(real_step)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not on:
            return real_step(self, *args, **kwargs)
        return steps.step(self, real_step, args, kwargs)

    @functools.wraps(real_set)
    def set_timesteps(self: Any, *args: Any, **kwargs: Any) -> Any:
        if on:
            steps.set_up()
        return real_set(self, *args, **kwargs)

    same = {"__module__": base.__module__, "__qualname__": base.__qualname__, "__doc__": base.__doc__}
    return type(base.__name__, (base,), {**same, "step": step, "set_timesteps": set_timesteps})
