"""The denoisers of one run: every model that is called inside the denoising loop, whatever its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from callsheet.workers.replay.codec import Node, UnknownType, pack, shape_only, unpack
from callsheet.workers.replay.patches import patched


class Denoisers:
    """Records the shapes that models return in the loop, and stands in for them while steps are replayed.

    ``shapes`` has for each model the shapes of its calls in the last iteration that called it.
    """

    def __init__(self, components: Mapping[str, Any], shapes: Mapping[str, list[Node]]) -> None:
        self._modules = {n: m for n, m in components.items() if isinstance(m, torch.nn.Module)}
        self.shapes: dict[str, list[Node]] = {name: list(nodes) for name, nodes in shapes.items()}
        self.in_loop = False
        self.standing_in = False
        self.fault = ""  # why the calls cannot be replayed
        self.since_step = False  # whether a model was called after the newest scheduler step
        self._calls: dict[str, int] = {}  # in this iteration

    @contextmanager
    def watched(self) -> Iterator[None]:
        """See every call of every model, also of a compiled one.

        A module calls ``_compiled_call_impl``, when it has one, instead of its own ``_call_impl``. That is
        the one place that compiled, hooked and plain modules share; neither hooks nor compiled code notice.
        """
        with ExitStack() as stack:
            for name, module in self._modules.items():
                stack.enter_context(patched(module, "_compiled_call_impl", self._spy(name, module)))
            yield

    def new_loop(self) -> None:
        """The denoising loop begins: calls before it were of other kinds."""
        self.in_loop = True
        self._calls = {}
        if not self.standing_in:
            self.shapes = {}

    def end_iteration(self) -> None:
        """An iteration is finished, the next one begins."""
        if self.since_step and self._calls:
            self.fault = self.fault or "a denoiser is called after the iteration's last scheduler step"
        self.in_loop = True  # also of a pipeline without a progress bar
        self._calls = {}

    def _spy(self, name: str, module: torch.nn.Module) -> Callable[..., Any]:
        compiled: Callable[..., Any] | None = vars(module).get("_compiled_call_impl")
        real: Callable[..., Any] = module._call_impl if compiled is None else compiled

        def call(*args: Any, **kwargs: Any) -> Any:
            if not self.in_loop:
                return real(*args, **kwargs)
            self.since_step = True
            at = self._calls.get(name, 0)
            self._calls[name] = at + 1
            shapes = self.shapes.get(name)
            if self.standing_in and shapes:
                return unpack(shapes[at % len(shapes)], {}, _device(args, kwargs))
            output = real(*args, **kwargs)
            self._record(name, at, output)
            return output

        return call

    def _record(self, name: str, at: int, output: Any) -> None:
        try:
            node = pack(output, name, shape_only)
        except UnknownType as error:
            self.fault = self.fault or f"what a denoiser returns cannot be written down: {error}"
            return
        shapes = self.shapes.setdefault(name, [])
        if at == len(shapes):
            shapes.append(node)
        elif shapes[at] != node:
            self.fault = self.fault or f"the shapes that {name} returns change from step to step"


def keeps_state(components: Mapping[str, Any]) -> str:
    """Why models of the pipeline remember things from step to step; "" when none does."""
    for name, component in components.items():
        if getattr(component, "is_cache_enabled", False):
            return f"a step cache is on in {name}"
        if getattr(component, "momentum_buffer", None) is not None:
            return f"{name} keeps a momentum from step to step"
        if isinstance(component, torch.nn.Module) and _stateful_hook(component):
            return f"the hook {_stateful_hook(component)} of {name} keeps state from step to step"
    return ""


def _stateful_hook(module: torch.nn.Module) -> str:
    """Name of one of diffusers' hooks (caches of several kinds) that says of itself that it keeps state."""
    for part in module.modules():
        registry = vars(part).get("_diffusers_hook")
        for name, hook in getattr(registry, "hooks", {}).items():
            if getattr(hook, "_is_stateful", False):
                return str(name)
    return ""


def _device(args: Any, kwargs: Any) -> torch.device:
    """Where a model's inputs are, and so its outputs."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor):
            return value.device
        if isinstance(value, list | tuple) and value and isinstance(value[0], torch.Tensor):
            return value[0].device
    return torch.device("cpu")
