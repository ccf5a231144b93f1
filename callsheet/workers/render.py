"""Run a pipeline for one request: seeded, watched at every step, stoppable, and usable again afterwards."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from callsheet.errors import JobFailed, ModelError
from callsheet.records.requests import VideoRequest
from callsheet.workers.frames import Frames, to_frames
from callsheet.workers.memory import free_memory, is_shortage, memory_report, traceback_text
from callsheet.workers.pipelines import LoadedPipeline
from callsheet.workers.replay import NotReplayable, Replay, Snapshot
from callsheet.workers.watch import OnPhase, OnStep, Watch

log = logging.getLogger(__name__)

MAX_SAID = 600  # characters of a pipeline's own words


def render(
    pipeline: LoadedPipeline,
    request: VideoRequest,
    *,
    on_step: OnStep,
    on_phase: OnPhase,
    resume: Snapshot | None = None,
) -> Frames:
    """Frames of one film. The same request on the same build and device gives the same frames, also resumed.

    ``on_phase`` gets ``encode``, ``denoise``, ``decode``, each once; ``on_step(done, total, take)`` is called
    after every computed denoising step, and ``take()`` inside it answers that step as a Snapshot, or raises
    NotReplayable, after which the run may go on. With ``resume`` the saved steps are not computed again;
    ``denoise`` is entered after them. What a callback raises stops the run at once and is raised from here,
    without the traceback that would keep tensors alive. Raises JobFailed (out of memory, wrong frames, the
    pipeline's own error), ModelError (a pipeline that cannot be watched) and NotReplayable (``resume`` does
    not fit this run: begin at step 0).
    """
    replay = Replay(pipeline.pipe, call_arguments(pipeline.pipe, request), resume)
    watch = Watch(on_step, on_phase, replay.snapshot)

    def run() -> Frames:
        with watch.over(pipeline.pipe, resumed=resume is not None):
            return to_frames(replay.run(watch.step_ended, watch.caught_up).frames[0], request)

    return _finish(pipeline, request, run, watch)


def plain(pipeline: LoadedPipeline, request: VideoRequest) -> Frames:
    """The same frames from the pipeline alone, unwatched, for comparison. Raises JobFailed and ModelError."""
    arguments = call_arguments(pipeline.pipe, request)
    idle = Watch(_never, _never, _never)
    return _finish(pipeline, request, lambda: to_frames(pipeline.pipe(**arguments).frames[0], request), idle)


def _finish(
    pipeline: LoadedPipeline, request: VideoRequest, run: Callable[[], Frames], watch: Watch
) -> Frames:
    """Run with seeded random states, leave the pipeline usable, and raise what the job shall end with."""
    try:
        with _seeded(request.seed):
            frames, failure = _attempt(run, watch)
    finally:
        pipeline.pipe.maybe_free_model_hooks()
    if failure is not None:
        _fail(failure, watch, request)
    assert frames is not None
    return frames


def call_arguments(pipe: Any, request: VideoRequest) -> dict[str, Any]:
    """The request in the words that this pipeline knows. Raises ModelError when it cannot be watched."""
    known = inspect.signature(type(pipe).__call__).parameters
    if "callback_on_step_end" not in known:
        raise ModelError(
            f"{type(pipe).__name__} takes no callback_on_step_end, so its jobs could be neither watched nor "
            "stopped. Use a pipeline that takes it."
        )
    if request.negative_prompt and "negative_prompt" not in known:
        log.warning("%s knows no negative prompt: left out", type(pipe).__name__)
    wanted = {
        "prompt": request.prompt,
        "negative_prompt": request.negative_prompt or None,
        "width": request.width,
        "height": request.height,
        "num_frames": request.frames,
        "frame_rate": request.fps,  # LTX
        "num_inference_steps": request.steps,
        "guidance_scale": request.guidance,
        # on the CPU, so that the first noise is the same on every GPU class
        "generator": torch.Generator("cpu").manual_seed(request.seed),
        "output_type": "pt",
    }
    return {name: value for name, value in wanted.items() if name in known}


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global generators too, from which some schedulers draw, and put them back afterwards."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


def _attempt(run: Callable[[], Frames], watch: Watch) -> tuple[Frames | None, Exception | None]:
    """What ``run`` answered or raised, the exception without its traceback, whose locals are tensors."""
    try:
        return run(), None
    except Exception as error:  # noqa: BLE001 - pipelines raise anything, and the worker shall live on
        if error is not watch.stopped:
            log.error("the pipeline failed in %s\n%s", watch.phase, traceback_text(error))
        return None, error.with_traceback(None)


def _never(*_args: Any) -> Any:
    raise AssertionError("nobody watches this run")


def _fail(failure: Exception, watch: Watch, request: VideoRequest) -> None:
    """Raise what the job shall end with."""
    if failure is watch.stopped or isinstance(failure, JobFailed | NotReplayable):
        raise failure
    said = _said(failure)
    free_memory()
    if is_shortage(failure):
        raise JobFailed(
            f"memory ran out while {request.model} was in {watch.phase} at {request.width}x{request.height}, "
            f"{request.frames} frames ({memory_report()}): {said}. No film was stored. Ask for fewer frames "
            "or a smaller size, or raise the model's min_vram_gib in the catalog, for a larger GPU."
        )
    raise JobFailed(
        f"the pipeline of {request.model} failed in {watch.phase}: {said}. No film was stored. "
        "The log has the traceback (`models verify`: with --debug). If another size, length, prompt or seed "
        "fails too, the model is at fault."
    )


def _said(failure: Exception) -> str:
    """The failure in one sentence without its full stop, cut where it is long."""
    text = str(failure).strip().rstrip(".") or "no reason given"
    return f"{type(failure).__name__}: {text if len(text) <= MAX_SAID else text[:MAX_SAID] + '...'}"
