"""What ``render`` makes of a pipeline's behaviour; real ones are in tests/integration/test_render_tiny.py."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

from callsheet.errors import JobCancelled, JobFailed, ModelError
from callsheet.workers.frames import Frames
from callsheet.workers.render import call_arguments, render
from tests.support.stub_pipeline import StubPipeline, loaded_stub
from tests.support.tiny import tiny_request

pytestmark = pytest.mark.torch

REQUEST = tiny_request("stub", steps=3, frames=2, width=8, height=4, negative_prompt="blurry")
PHASES = ["encode", "denoise", "decode"]


def run(pipe: StubPipeline, **callbacks: Callable[..., None]) -> Frames:
    quiet: dict[str, Any] = {"on_step": lambda *_: None, "on_phase": lambda _: None}
    return render(loaded_stub(pipe), REQUEST, **(quiet | callbacks))


def failing(phase: str, error: BaseException) -> Callable[[str], None]:
    def fault(now: str) -> None:
        if now == phase:
            raise error

    return fault


def test_steps_and_phases_are_told_in_order() -> None:
    told: list[object] = []
    run(StubPipeline(), on_step=lambda *step: told.append(step[:2]), on_phase=told.append)
    assert told == ["encode", "denoise", (1, 3), (2, 3), (3, 3), "decode"]


def test_only_what_the_pipeline_knows_is_passed() -> None:
    known = call_arguments(StubPipeline(), REQUEST)
    assert set(known) == {
        "prompt",
        "width",
        "height",
        "num_frames",
        "num_inference_steps",
        "generator",
        "output_type",
    }


def test_a_pipeline_that_cannot_be_watched_is_refused() -> None:
    class Deaf:
        def __call__(self, prompt: str) -> None: ...

    with pytest.raises(ModelError, match=r"Deaf takes no callback_on_step_end"):
        call_arguments(Deaf(), REQUEST)


def test_the_callers_random_state_is_left_alone() -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    run(StubPipeline(fault=lambda _: torch.rand(5)))
    assert torch.equal(torch.rand(3), expected)


def test_the_global_random_state_follows_the_seed() -> None:
    drawn: list[float] = []
    for _ in range(2):
        run(StubPipeline(fault=lambda _: drawn.append(torch.rand(1).item())))
    assert drawn[: len(drawn) // 2] == drawn[len(drawn) // 2 :]


@pytest.mark.parametrize("error", [JobCancelled("by the user"), RuntimeError("mine"), KeyError("x")])
def test_what_a_step_raises_stops_the_run_and_comes_out(error: Exception) -> None:
    pipe = StubPipeline()
    steps: list[int] = []

    def on_step(done: int, total: int, _take: object) -> None:
        steps.append(done)
        if done == 2:
            raise error

    with pytest.raises(type(error)) as raised:
        run(pipe, on_step=on_step)
    assert raised.value is error
    assert steps == [1, 2]
    assert pipe.freed == 1
    run(pipe)


@pytest.mark.parametrize("phase", PHASES)
def test_what_a_phase_raises_comes_out_too(phase: str) -> None:
    pipe = StubPipeline()
    error = JobCancelled("by the user")
    with pytest.raises(JobCancelled) as raised:
        run(pipe, on_phase=failing(phase, error))
    assert raised.value is error
    assert pipe.freed == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_an_order_to_exit_is_not_swallowed(error: BaseException) -> None:
    pipe = StubPipeline(failing("denoise", error))
    with pytest.raises(type(error)):
        run(pipe)
    assert pipe.freed == 1


@pytest.mark.parametrize("phase", PHASES)
def test_the_pipelines_own_error_fails_the_job_with_its_phase(phase: str) -> None:
    pipe = StubPipeline(failing(phase, ValueError("bad shapes")))
    with pytest.raises(JobFailed, match=rf"failed in {phase}: ValueError: bad shapes.*No film was stored"):
        run(pipe)
    assert pipe.freed == 1


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
    ],
)
def test_a_shortage_of_memory_says_what_was_asked_for_and_what_helps(error: Exception) -> None:
    with pytest.raises(
        JobFailed, match=r"memory ran out.*decode at 8x4, 2 frames.*fewer frames.*min_vram_gib"
    ):
        run(StubPipeline(failing("decode", error)))


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("full"), ValueError("bad")])
def test_a_failure_keeps_no_tensor_alive(error: Exception) -> None:
    kept: list[weakref.ref[torch.Tensor]] = []

    def fault(phase: str) -> None:
        if phase == "decode":
            large = torch.zeros(1000)
            kept.append(weakref.ref(large))
            raise error

    with pytest.raises(JobFailed) as raised:
        run(StubPipeline(fault))
    gc.collect()
    assert raised.value is not None  # it lives, the tensor does not
    assert kept[0]() is None


def test_a_stop_keeps_no_tensor_alive() -> None:
    stop, kept = JobCancelled("stop"), []

    class Holding(StubPipeline):
        def encode_prompt(self, prompt: str) -> torch.Tensor:
            encoded = super().encode_prompt(prompt)
            kept.append(weakref.ref(encoded))
            return encoded

    def on_step(done: int, total: int, _take: object) -> None:
        raise stop

    with pytest.raises(JobCancelled) as raised:
        run(Holding(), on_step=on_step)
    gc.collect()
    assert raised.value is stop
    assert kept[0]() is None


def test_wrong_frames_fail_the_job() -> None:
    with pytest.raises(JobFailed, match=r"2 x 3 x 4 x 8"):
        run(StubPipeline(video=torch.zeros(1, 3, 3, 4, 8)))
    with pytest.raises(JobFailed, match="not numbers"):
        run(StubPipeline(video=torch.full((1, 2, 3, 4, 8), float("nan"))))


def test_nothing_stays_behind_on_the_pipeline() -> None:
    pipe = StubPipeline()
    before = set(vars(pipe))
    run(pipe)
    assert set(vars(pipe)) == before
    assert "encode_prompt" not in vars(pipe)
