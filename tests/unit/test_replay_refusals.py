"""Runs that cannot be saved say why and go on; checkpoints that do not fit are refused; no patch stays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from diffusers import FlowMatchEulerDiscreteScheduler, FlowMatchHeunDiscreteScheduler

from callsheet.workers.replay import NotReplayable, Replay, Snapshot
from tests.support.every_step import check_every_step, plain, replayed
from tests.support.loop_pipeline import SIZE, LoopPipeline
from tests.support.tiny_zoo import Case, seeded

pytestmark = pytest.mark.torch


class VaryingSteps(LoopPipeline):
    def iteration(self, index: int, timestep: Any, latents: Any, prompt: Any) -> Any:
        latents = super().iteration(index, timestep, latents, prompt)
        if index == 1:
            self.scheduler._step_index = 0
            latents = self.scheduler.step(latents, timestep, latents, return_dict=False)[0]
        return latents


class NoStep(LoopPipeline):
    def iteration(self, index: int, timestep: Any, latents: Any, prompt: Any) -> Any:
        return self.brain(latents)


class NoDenoiser(LoopPipeline):
    def iteration(self, index: int, timestep: Any, latents: Any, prompt: Any) -> Any:
        return self.scheduler.step(prompt, timestep, latents, return_dict=False)[0]


class NoScheduler(LoopPipeline):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = self.components.pop("scheduler")

    @property
    def scheduler(self) -> Any:
        return self.hidden


class TwoLoops(LoopPipeline):
    def loop(self, timesteps: torch.Tensor, latents: Any, encoded: Any, callback: Any) -> None:
        super().loop(timesteps, latents, encoded, callback)
        self.scheduler._step_index = None
        super().loop(timesteps, self.latents, encoded, callback)


class SetUpAgain(LoopPipeline):
    def iteration(self, index: int, timestep: Any, latents: Any, prompt: Any) -> Any:
        if index == 1:
            self.prepare(4)
        return super().iteration(index, timestep, latents, prompt)


class DenoisesAhead(LoopPipeline):
    def iteration(self, index: int, timestep: Any, latents: Any, prompt: Any) -> Any:
        latents = super().iteration(index, timestep, latents, prompt)
        return latents + self.brain(latents)


class GrowingShapes(LoopPipeline):
    def iteration(self, index: int, timestep: Any, latents: Any, prompt: Any) -> Any:
        wide = self.brain((latents + prompt).expand(index + 1, SIZE))
        return self.scheduler.step(wide[0], timestep, latents, return_dict=False)[0]


class CallsBackSeldom(LoopPipeline):
    def call_back(self, callback: Any, index: int, timestep: Any, latents: Any) -> None:
        if index % 2:
            super().call_back(callback, index, timestep, latents)


class HoldsLock(LoopPipeline):
    def prepare(self, steps: int) -> torch.Tensor:
        self.scheduler.noise = {"sampler": [object()]}
        return super().prepare(steps)


class OddResults(LoopPipeline):
    class Scheduler(FlowMatchEulerDiscreteScheduler):
        def step(self, *args: Any, **kwargs: Any) -> Any:
            return (*super().step(*args, **kwargs), SimpleNamespace())

    def __init__(self) -> None:
        super().__init__(self.Scheduler())


class Cached(LoopPipeline):
    def __init__(self) -> None:
        super().__init__()
        self.brain.is_cache_enabled = True


class Hooked(LoopPipeline):
    def __init__(self) -> None:
        super().__init__()
        self.components["brain"] = torch.nn.Sequential(self.brain)
        self.brain[0]._diffusers_hook = SimpleNamespace(hooks={"mag": SimpleNamespace(_is_stateful=True)})


class Momentum(LoopPipeline):
    def __init__(self) -> None:
        super().__init__()
        self.components["guider"] = SimpleNamespace(momentum_buffer=[0.5])


REFUSED = [
    (VaryingSteps, "steps change from iteration to iteration"),
    (NoStep, "without a step of its scheduler"),
    (NoDenoiser, "no model was seen at work"),
    (NoScheduler, "it has no scheduler"),
    (TwoLoops, "several denoising loops"),
    (SetUpAgain, "several denoising loops"),
    (DenoisesAhead, "after the iteration's last scheduler step"),
    (GrowingShapes, "the shapes that brain returns change"),
    (CallsBackSeldom, "does not call back once after each iteration"),
    (HoldsLock, r"scheduler\.0\.noise\.sampler\.0 is a builtins\.object"),
    (OddResults, r"step\.0\.1 is a types\.SimpleNamespace"),
    (Cached, "a step cache is on in brain"),
    (Hooked, "the hook mag of brain keeps state"),
    (Momentum, "guider keeps a momentum"),
]


def case(make: Callable[[], Any] = LoopPipeline, *, steps: int = 4) -> Case:
    return Case(make, lambda: {"prompt": "a cat", "steps": steps, "generator": seeded()})


def saved(pipe: Any, at: int, of: Case | None = None) -> Snapshot:
    """A run's snapshot at one step."""
    found: list[Snapshot] = []

    def also(replay: Replay, done: int) -> None:
        if done == at:
            found.append(replay.snapshot())

    replayed(of or case(), pipe, also=also)
    return found[0]


def state(pipe: Any) -> Any:
    """Everything that a watched run could leave behind."""
    parts = pipe.components
    return (
        dict(vars(pipe), encoded=0, latents=0, num_timesteps=0),
        {name: type(part) for name, part in parts.items()},
        {name: set(vars(part)) for name, part in parts.items() if isinstance(part, torch.nn.Module)},
    )


def test_the_usual_loop_resumes_from_every_step_whatever_its_model_is_called() -> None:
    assert check_every_step(case()) == 4
    assert check_every_step(case(lambda: LoopPipeline(FlowMatchHeunDiscreteScheduler()))) == 7


@pytest.mark.parametrize(("kind", "reason"), REFUSED, ids=[kind.__name__ for kind, _ in REFUSED])
def test_what_cannot_be_saved_says_why_and_runs_on(kind: type[LoopPipeline], reason: str) -> None:
    odd, reasons = case(kind), []

    def also(replay: Replay, _done: int) -> None:
        try:
            replay.snapshot()
        except NotReplayable as error:
            reasons.append(str(error))

    film = plain(odd, kind())
    assert torch.equal(replayed(odd, kind(), also=also), film)
    with pytest.raises(NotReplayable, match=f"{kind.__name__} cannot be saved: .*{reason}.*begin at step 0"):
        raise NotReplayable(reasons[-1])


def test_a_snapshot_is_only_taken_while_a_step_ends() -> None:
    replay = Replay(LoopPipeline(), case().arguments())
    with pytest.raises(NotReplayable, match="while a computed step ends"):
        replay.snapshot()
    replay.run(lambda _pipe, _index, _timestep, tensors: tensors)
    with pytest.raises(NotReplayable, match="while a computed step ends"):
        replay.snapshot()


@pytest.mark.parametrize(
    ("make", "change", "reason"),
    [
        (LoopPipeline, {"steps": 2}, "at step 3, but this run has only 2"),
        (LoopPipeline, {"generator": None}, "random states"),
        (VaryingSteps, {}, r"steps \[0, 0\] differ from the checkpoint's \[0\]"),
        (NoStep, {}, r"steps \[\] differ"),
        (TwoLoops, {"steps": 2}, "several"),
        (Cached, {}, "step cache"),
        (lambda: LoopPipeline(FlowMatchHeunDiscreteScheduler()), {}, "schedulers are .*Euler.*Heun"),
        (lambda: LoopPipeline(denoiser=torch.nn.Identity()), {"steps": 2}, "has only 2"),
    ],
)
def test_a_checkpoint_that_does_not_fit_the_run_is_refused(
    make: Callable[[], Any], change: dict[str, Any], reason: str
) -> None:
    snapshot, pipe = saved(LoopPipeline(), 3), make()
    before = state(pipe)
    with pytest.raises(NotReplayable, match=reason):
        replayed(Case(make, lambda: case().arguments() | change), pipe, snapshot)
    assert str(state(pipe)) == str(before)


def test_a_pipelines_own_error_in_the_replayed_part_is_the_checkpoints_fault() -> None:
    class Chokes(LoopPipeline):
        def iteration(self, index: int, timestep: Any, latents: Any, prompt: Any) -> Any:
            raise ValueError("bad shapes")

    with pytest.raises(NotReplayable, match="ValueError: bad shapes"):
        replayed(case(), Chokes(), saved(LoopPipeline(), 2))
    with pytest.raises(ValueError, match="bad shapes"):
        replayed(case(), Chokes())


def test_schedulers_of_the_checkpoint_must_be_this_runs() -> None:
    snapshot = saved(LoopPipeline(), 2)
    alien = [{**snapshot.meta["schedulers"][0], "class": "Other"}]
    with pytest.raises(NotReplayable, match="Other"):
        replayed(case(), LoopPipeline(), replace(snapshot, meta={**snapshot.meta, "schedulers": alien}))


def test_neither_prompt_nor_finished_steps_are_computed_again() -> None:
    computed: list[int] = []

    class Counting(torch.nn.Linear):
        def forward(self, latents: torch.Tensor) -> torch.Tensor:
            computed.append(1)
            return super().forward(latents)

    pipe = LoopPipeline(denoiser=Counting(SIZE, SIZE))
    snapshot = saved(pipe, 3)
    computed.clear()
    pipe.encoded = 0
    replayed(case(), pipe, snapshot)
    assert (pipe.encoded, len(computed)) == (0, 1)


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), SystemExit(3)])
@pytest.mark.parametrize("resumed", [False, True])
def test_nothing_stays_behind_whatever_a_callback_raises(error: BaseException, resumed: bool) -> None:
    pipe = LoopPipeline()
    snapshot = saved(pipe, 2) if resumed else None
    before = state(pipe)

    def also(_replay: Replay, done: int) -> None:
        if done == 3:
            raise error

    with pytest.raises(type(error)) as raised:
        replayed(case(), pipe, snapshot, also=also)
    assert raised.value is error
    assert str(state(pipe)) == str(before)
    assert torch.equal(plain(case(), pipe), plain(case(), LoopPipeline()))


def test_what_was_patched_before_is_there_again() -> None:
    pipe = LoopPipeline()
    mine = functools.partial(pipe.encode_prompt)
    vars(pipe)["encode_prompt"] = mine
    impl = functools.partial(pipe.brain._call_impl)
    pipe.brain._compiled_call_impl = impl
    assert torch.equal(replayed(case(), pipe, saved(pipe, 2)), plain(case(), LoopPipeline()))
    assert vars(pipe)["encode_prompt"] is mine
    assert vars(pipe.brain)["_compiled_call_impl"] is impl


@pytest.mark.parametrize("how", ["module.compile", "torch.compile"])
def test_a_compiled_denoiser_is_stood_in_for_without_being_compiled_again(how: str) -> None:
    calls: list[int] = []

    def backend(graph: Any, _inputs: Any) -> Any:
        calls.append(1)
        return graph.forward

    class Brain(torch.nn.Module):
        def forward(self, latents: torch.Tensor) -> torch.Tensor:
            return torch.tanh(latents * 1.5) + 0.25

    def make() -> LoopPipeline:
        pipe = LoopPipeline(denoiser=Brain())
        if how == "module.compile":
            pipe.brain.compile(backend=backend)
        else:
            pipe.components["brain"] = torch.compile(pipe.brain, backend=backend)
        return pipe

    pipe = make()
    film = plain(case(), pipe)
    compiled = len(calls)
    assert compiled >= 1
    assert torch.equal(replayed(case(), pipe, saved(pipe, 2)), film)
    assert len(calls) == compiled


def test_pipelines_may_write_into_what_a_step_returned() -> None:
    class Writes(LoopPipeline):
        def iteration(self, index: int, timestep: Any, latents: Any, prompt: Any) -> Any:
            return super().iteration(index, timestep, latents, prompt).add_(1.0)

    assert check_every_step(case(Writes)) == 4


def test_a_pipeline_without_a_progress_bar_is_saved_from_its_second_step_on() -> None:
    class Plain(LoopPipeline):
        progress_bar = None  # type: ignore[assignment]

        def loop(self, timesteps: torch.Tensor, latents: Any, encoded: Any, callback: Any) -> None:
            self.num_timesteps = len(timesteps)
            for index, timestep in enumerate(timesteps):
                latents = self.iteration(index, timestep, latents, encoded)
                self.call_back(callback, index, timestep, latents)
            self.latents = latents

    with pytest.raises(NotReplayable, match="no model was seen"):
        saved(Plain(), 1)
    film = plain(case(), Plain())
    for at in (2, 3, 4):
        assert torch.equal(replayed(case(), Plain(), saved(Plain(), at)), film)


def test_what_is_drawn_before_the_loop_is_drawn_again_whatever_the_caller_seeded() -> None:
    class DrawsBefore(LoopPipeline):
        def prepare(self, steps: int) -> torch.Tensor:
            self.noise = torch.randn(SIZE) + self.first
            return super().prepare(steps)

        def draw(self, generator: Any) -> Any:
            self.first = super().draw(generator)
            return self.first

        def iteration(self, index: int, timestep: Any, latents: Any, prompt: Any) -> Any:
            return super().iteration(index, timestep, latents + self.noise, prompt)

    film = plain(case(DrawsBefore), DrawsBefore())
    other = Case(DrawsBefore, lambda: case().arguments() | {"generator": seeded(99)})
    replay = Replay(DrawsBefore(), other.arguments(), saved(DrawsBefore(), 2))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(98)
        output = replay.run(lambda _pipe, _index, _timestep, tensors: tensors)
    assert torch.equal(output.frames, film)
