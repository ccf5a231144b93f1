"""Whether a model resumes bit for bit: a run undisturbed, one saved at every step, one resumed from each."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from callsheet.catalog import Catalog
from callsheet.errors import CallsheetError, ModelNotFound
from callsheet.records.requests import VideoRequest
from callsheet.workers.frames import frames_sha256
from callsheet.workers.pipelines import LoadedPipeline, best_device, load_pipeline
from callsheet.workers.render import plain, render
from callsheet.workers.replay import NotReplayable, Snapshot, dump, parse

STEPS = 6  # enough for every scheduler's first, middle and last steps
WIDTH = HEIGHT = 128  # of a folder, whose allowed shapes nobody knows
FRAMES = 9  # of a folder: fits strides of 4 and 8

PROMPT = "a cat walks on the grass"


@dataclass(frozen=True, slots=True)
class Resumed:
    """What came of a run resumed at one step."""

    step: int  # finished steps in the checkpoint, from 1
    exact: bool  # the same frames as the undisturbed run, bit for bit
    reason: str  # why not; "" when exact
    checkpoint_bytes: int
    save_s: float  # seconds that the denoising thread waited for the copy
    resume_s: float  # seconds until the first step that was computed again; 0 when it never came to that


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of a model on this machine."""

    model: str  # catalog name or folder
    steps: tuple[Resumed, ...]
    reason: str = ""  # why it cannot be resumed at all

    @property
    def ok(self) -> bool:
        """Whether every step resumes bit for bit."""
        return not self.reason and bool(self.steps) and all(step.exact for step in self.steps)


@dataclass(frozen=True, slots=True)
class Subject:
    """A model to be looked at, and the film that it makes for that."""

    source: str
    revision: str
    dtype: str
    tiling: bool
    request: VideoRequest

    def load(self) -> LoadedPipeline:
        """Its weights on the device. Raises ModelError."""
        return load_pipeline(self.source, revision=self.revision, dtype=self.dtype, tiling=self.tiling)


def subject_of(
    name: str, catalog: Catalog, *, steps: int = 0, size: tuple[int, int] | None = None, frames: int = 0
) -> Subject:
    """A model of the catalog in its default shape, or a folder in a small one. Raises ModelNotFound.

    ``steps``, ``size`` (width, height in pixels) and ``frames`` are asked for in place of the defaults.
    """
    if name in catalog:
        spec = catalog.get(name)
        request = _request(name, spec.width, spec.height, spec.frames, spec.fps, spec.guidance)
        subject = Subject(str(catalog.resolve_source(spec)), spec.revision, spec.dtype, spec.tiling, request)
    elif Path(name).expanduser().is_dir():
        dtype = "bfloat16" if best_device() == "cuda" else "float32"
        subject = Subject(name, "", dtype, False, _request(name, WIDTH, HEIGHT, FRAMES, 8, 5.0))
    else:
        raise ModelNotFound(
            f"{name[:200]!r} is neither a model of the catalog nor a folder; nothing was run."
        )
    wanted = subject.request
    width, height = size or (wanted.width, wanted.height)
    wanted = replace(
        wanted, steps=steps or wanted.steps, frames=frames or wanted.frames, width=width, height=height
    )
    return replace(subject, request=wanted)


def verify(subject: Subject, tell: Callable[[Resumed], None]) -> Verdict:
    """The verdict; ``tell`` gets each step as soon as it is known. Takes about steps / 2 + 2 whole runs."""
    model = subject.request.model
    try:
        pipeline = subject.load()
        with tempfile.TemporaryDirectory(prefix="callsheet-verify-") as folder:
            return _verify(pipeline, subject.request, Path(folder), tell)
    except CallsheetError as error:
        return Verdict(model, (), str(error))


def _verify(
    pipeline: LoadedPipeline, request: VideoRequest, folder: Path, tell: Callable[[Resumed], None]
) -> Verdict:
    film = frames_sha256(plain(pipeline, request))
    watched, saves_s = _save_every_step(pipeline, request, folder)
    if watched != film:
        return Verdict(request.model, (), "a run that is watched gives another film than one that is not.")
    results = []
    for step, save_s in enumerate(saves_s, start=1):
        blob = _file(folder, step).read_bytes()
        results.append(_resume(pipeline, request, step, blob, film, save_s))
        tell(results[-1])
    return Verdict(request.model, tuple(results))


def _save_every_step(
    pipeline: LoadedPipeline, request: VideoRequest, folder: Path
) -> tuple[str, list[float]]:
    """Hash of the film, and the seconds that each copy took. The checkpoints go into the folder."""
    saves_s: list[float] = []

    def on_step(done: int, _total: int, take: Callable[[], Snapshot]) -> None:
        began = time.perf_counter()
        snapshot = take()
        saves_s.append(time.perf_counter() - began)
        _file(folder, done).write_bytes(dump(snapshot, {}))

    frames = render(pipeline, request, on_step=on_step, on_phase=_ignore)
    return frames_sha256(frames), saves_s


def _resume(
    pipeline: LoadedPipeline, request: VideoRequest, step: int, blob: bytes, film: str, save_s: float
) -> Resumed:
    began, caught_up = time.perf_counter(), [0.0]

    def on_phase(phase: str) -> None:
        if phase == "denoise":
            caught_up[0] = time.perf_counter() - began

    try:
        frames = render(pipeline, request, on_step=_ignore, on_phase=on_phase, resume=parse(blob))
        reason = "" if frames_sha256(frames) == film else "the frames differ from the undisturbed run's."
    except NotReplayable as error:
        reason = str(error)
    return Resumed(step, not reason, reason, len(blob), round(save_s, 6), round(caught_up[0], 6))


def _request(model: str, width: int, height: int, frames: int, fps: int, guidance: float) -> VideoRequest:
    return VideoRequest(
        prompt=PROMPT,
        model=model,
        negative_prompt="",
        width=width,
        height=height,
        frames=frames,
        fps=fps,
        steps=STEPS,
        guidance=guidance,
        seed=1,
    )


def _file(folder: Path, step: int) -> Path:
    return folder / f"{step}.safetensors"


def _ignore(*_args: object) -> None:
    """A callback that does nothing."""
