"""Whether a checkpoint belongs to a job's run here, and whether the run goes on bit for bit."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import diffusers
import torch

from callsheet.records.requests import VideoRequest
from callsheet.workers.pipelines import LoadedPipeline
from callsheet.workers.replay.refusals import CheckpointRefused

_PIXELS = ("width", "height", "frames", "fps", "steps", "guidance", "seed")


@dataclass(frozen=True, slots=True)
class Belonging:
    """What a checkpoint's metadata says of the run that it was taken from. JSON-able, name -> fact."""

    must: dict[str, Any]  # equal, or the checkpoint is of another film
    exact: dict[str, Any]  # equal, or the resumed film differs in its last bits

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dict; :meth:`from_json` reads it back."""
        return {"must": self.must, "exact": self.exact}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Belonging:
        """Read :meth:`to_json` back. Raises CheckpointRefused when it is something else."""
        must, exact = data.get("must"), data.get("exact")
        if not (isinstance(must, dict) and isinstance(exact, dict)):
            raise CheckpointRefused(
                "the checkpoint does not say of which run it is; the job starts again at step 0."
            )
        return cls(must, exact)


def belonging(pipeline: LoadedPipeline, request: VideoRequest, *, batch: int = 1) -> Belonging:
    """The facts of a run of ``request``, as one of ``batch`` films, in this process."""
    must = {**_model(pipeline), **_scheduler(pipeline.pipe), **_pixels(request), "diffusers": _minor()}
    exact = {
        **_build(pipeline.device),
        "batch": batch,
        "tiling": pipeline.tiling,
        "compiled": _compiled(pipeline.pipe),
        "attention_set": _attention_set(pipeline.pipe),
    }
    return Belonging(must, exact)


def check_belongs(saved: Belonging, here: Belonging) -> list[str]:
    """What makes the resumed film differ in its last bits; an empty list when nothing does.

    Raises CheckpointRefused, with the names of the facts that differ, when the checkpoint is of another film.
    """
    wrong = differences(saved.must, here.must)
    if wrong:
        raise CheckpointRefused(
            f"the checkpoint is of another run: {', '.join(wrong)}; the job starts again at step 0."
        )
    return differences(saved.exact, here.exact)


def differences(saved: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Each fact that differs, with both values when they are short."""
    names = sorted(set(saved) | set(here))
    return [_tell(name, saved, here) for name in names if saved.get(name) != here.get(name)]


def build_id() -> str:
    """Short hash of what decides the last bits here, whatever the model: where it is equal, so are films."""
    facts = _build("cuda" if torch.cuda.is_available() else "cpu")
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]


def _tell(name: str, saved: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    was, now = (json.dumps(facts.get(name)) for facts in (saved, here))
    return f"{name} (was {was}, is {now})" if len(was) + len(now) < 100 else name


def _model(pipeline: LoadedPipeline) -> dict[str, Any]:
    """A folder is known by its files, since each node may have it elsewhere; a hub model by its commit."""
    hub = f"{pipeline.source}@{pipeline.commit or pipeline.revision}"
    return {
        "model": pipeline.files_sha256 or hub,
        "pipeline": type(pipeline.pipe).__name__,
        "dtype": pipeline.dtype,
        "device": pipeline.device,  # only a GPU's run tells which tensors a scheduler keeps on the CPU
    }


def _scheduler(pipe: Any) -> dict[str, Any]:
    """Class and settings. Settings that begin with an underscore are diffusers' notes to itself."""
    scheduler = getattr(pipe, "scheduler", None)
    if scheduler is None:
        return {"scheduler": None}
    config = json.loads(scheduler.to_json_string())
    plain = {f"scheduler.{name}": value for name, value in config.items() if not name.startswith("_")}
    return {"scheduler": type(scheduler).__name__, **plain}


def _pixels(request: VideoRequest) -> dict[str, Any]:
    """What decides pixels; the prompts only as a hash."""
    prompts = json.dumps([request.prompt, request.negative_prompt]).encode()
    return {name: getattr(request, name) for name in _PIXELS} | {
        "prompt_sha256": hashlib.sha256(prompts).hexdigest()
    }


def _minor() -> str:
    """Minor releases change pipelines' loops and schedulers' attributes; patch releases do not."""
    return ".".join(str(diffusers.__version__).split(".")[:2])


def _build(device: str) -> dict[str, Any]:
    """Hardware, libraries and switches that decide which kernels compute."""
    facts = {
        "torch": str(torch.__version__),
        "diffusers": str(diffusers.__version__),
        "attention": os.environ.get("DIFFUSERS_ATTN_BACKEND", "native"),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "float32_matmul": torch.get_float32_matmul_precision(),
    }
    return facts | (_cpu() if device == "cpu" else _cuda())


def _cuda() -> dict[str, Any]:
    cuda: Any = torch.backends.cuda
    cudnn: Any = torch.backends.cudnn
    on = (cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.math_sdp_enabled())
    return {
        "gpu": torch.cuda.get_device_name(),
        "cuda": str(torch.version.cuda),
        "cudnn": cudnn.version(),
        "cudnn_benchmark": cudnn.benchmark,
        "tf32": cudnn.allow_tf32,
        "sdp": "".join("yn"[not one] for one in on),
    }


def _cpu() -> dict[str, Any]:
    return {
        "gpu": f"cpu {platform.machine()} {_cpu_name()}",
        "isa": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),  # sums are split among them: changes a film's last bits
    }


@functools.cache
def _cpu_name() -> str:
    """Math libraries choose kernels by the maker, too."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _compiled(pipe: Any) -> list[str]:
    """Names of the models that torch.compile has been applied to."""
    return [
        name
        for name, module in getattr(pipe, "components", {}).items()
        if isinstance(module, torch.nn.Module)
        and (hasattr(module, "_orig_mod") or vars(module).get("_compiled_call_impl") is not None)
    ]


def _attention_set(pipe: Any) -> list[str]:
    """Attention backends that models of the pipeline were set to, in place of the process's own."""
    modules = [m for m in getattr(pipe, "components", {}).values() if isinstance(m, torch.nn.Module)]
    processors = (getattr(part, "processor", None) for module in modules for part in module.modules())
    backends = {getattr(processor, "_attention_backend", None) for processor in processors}
    return sorted(str(getattr(backend, "value", backend)) for backend in backends - {None})
