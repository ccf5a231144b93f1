"""Load a diffusers pipeline from a folder or the Hub, by the one path that every model takes."""

from __future__ import annotations

import logging
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import diffusers
import huggingface_hub
import torch

from callsheet.errors import ModelError
from callsheet.workers.memory import free_memory, is_shortage, memory_report, traceback_text
from callsheet.workers.model_files import NEXT, check_folder, folder_sha256
from callsheet.workers.quiet import quiet

log = logging.getLogger(__name__)

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


@dataclass(frozen=True, slots=True)
class LoadedPipeline:
    """A pipeline with its weights on the device, and what its films' manifests say about it."""

    pipe: Any  # the diffusers pipeline
    source: str  # folder or hub id
    revision: str  # as the catalog says; "" = none
    commit: str  # hub commit that the revision meant when it was loaded; "" for a folder
    files_sha256: str  # hash of the folder; "" for the hub
    dtype: str  # bfloat16 | float16 | float32
    device: str  # "cuda" or "cpu"
    load_s: float  # seconds that loading took
    tiling: bool = False  # the VAE decodes in tiles, which changes pixels where they meet


def best_device() -> str:
    """``"cuda"`` when there is a GPU that this process may use, else ``"cpu"``."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def load_pipeline(
    source: str, *, revision: str = "", dtype: str, device: str = "", tiling: bool = False
) -> LoadedPipeline:
    """Load weights onto the device (by default the best one). Takes as long as reading them from disk.

    ``source`` is a folder or a hub id (``org/name``); with ``tiling`` the VAE decodes in tiles. Raises
    ModelError with path or hub id and next step: files missing or damaged, not to be fetched, no pipeline,
    a VAE that cannot tile, or too large for the GPU's memory.
    """
    begin = time.monotonic()
    device = device or best_device()
    is_folder = not _is_hub_id(source)
    files_sha256 = _checked(Path(source).expanduser()) if is_folder else ""
    pipe = _load(source, revision, _dtype(dtype, source), device, is_folder=is_folder)
    pipe.set_progress_bar_config(disable=True)
    if tiling:
        _tile(pipe, source)
    commit = "" if is_folder else _commit(source, revision)
    load_s = time.monotonic() - begin
    return LoadedPipeline(pipe, source, revision, commit, files_sha256, dtype, device, load_s, tiling)


def _tile(pipe: Any, source: str) -> None:
    """Decode in tiles. Raises ModelError when the VAE cannot."""
    enable = getattr(getattr(pipe, "vae", None), "enable_tiling", None)
    if enable is None:
        raise ModelError(
            f"{source}: its VAE cannot decode in tiles, which the catalog asks for; no job of it can run. "
            "Set tiling = false for this model, and min_vram_gib to what an untiled decode takes."
        )
    enable()


def _is_hub_id(source: str) -> bool:
    return _HUB_ID.fullmatch(source) is not None and not Path(source).exists()


def _checked(folder: Path) -> str:
    check_folder(folder)
    return folder_sha256(folder)


def _dtype(name: str, source: str) -> torch.dtype:
    if name not in DTYPES:
        raise ModelError(f"the model {source} has dtype {name!r} in the catalog. Use {', '.join(DTYPES)}.")
    return DTYPES[name]


def _load(source: str, revision: str, dtype: torch.dtype, device: str, *, is_folder: bool) -> Any:
    try:
        with quiet():
            return _from_pretrained(source, revision, dtype).to(device)
    except Exception as error:  # noqa: BLE001 - libraries raise anything, and the worker shall live on
        log.warning("loading %s failed\n%s", source, traceback_text(error))
        short, said = is_shortage(error), _first_line(error)
    free_memory()  # outside the except block, whose traceback would keep the tensors alive
    if short:
        raise ModelError(
            f"the weights of {source} do not fit into memory ({memory_report()}): {said}. "
            "Keep fewer models resident, or give the model a larger min_vram_gib in the catalog."
        )
    raise ModelError(_load_fault(source, revision, said, is_folder=is_folder))


def _from_pretrained(source: str, revision: str, dtype: torch.dtype) -> Any:
    """Always with a dtype (without it loading is five times slower), and never from pickled weights."""
    place = str(Path(source).expanduser()) if Path(source).expanduser().is_dir() else source
    return diffusers.DiffusionPipeline.from_pretrained(
        place, revision=revision or None, torch_dtype=dtype, use_safetensors=True
    )


def _load_fault(source: str, revision: str, said: str, *, is_folder: bool) -> str:
    if is_folder:
        return f"the model in {source} cannot be loaded: {said}. {NEXT}"
    at = f" at revision {revision}" if revision else ""
    fetch = f"hf download {source}" + (f" --revision {revision}" if revision else "")
    return (
        f"the model {source}{at} cannot be fetched from the Hub or its cache: {said}. "
        f"Run `{fetch}` where there is a network and share HF_HOME with the worker (HF_TOKEN opens gated "
        "models, HF_HUB_OFFLINE=1 keeps to the cache), or set the model's source to a folder."
    )


def _commit(source: str, revision: str) -> str:
    """The commit that a revision meant when it was cached: a branch's name alone would not find it again."""
    path = huggingface_hub.try_to_load_from_cache(source, "model_index.json", revision=revision or None)
    return Path(path).parent.name if isinstance(path, str) else ""


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else 'no reason given'}".rstrip(".")[:400]
