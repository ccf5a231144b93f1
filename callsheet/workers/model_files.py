"""Look at a model folder before it is loaded: is all of it there, and what is it?"""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

from callsheet.errors import ModelError

_HASH_ALL_BELOW = 64 * 1024 * 1024  # bytes; of larger folders JSON files and sizes are hashed
_MAX_HEADER = 100 * 1024 * 1024  # bytes; the safetensors format's own limit
NEXT = (
    "Build it (tiny models: `callsheet models build-tiny`) or download it again, or set the model's source "
    "in the catalog to a folder that holds it."
)


def check_folder(folder: Path) -> dict[str, Any]:
    """Answer the ``model_index.json`` of a diffusers folder whose files are all there and whole.

    Reads JSON files and the headers of weight files, not the weights.
    Raises ModelError with the path of the first fault and the next step.
    """
    if not folder.is_dir():
        raise ModelError(f"the model folder {folder} does not exist. {NEXT}")
    index = read_json(folder / "model_index.json")
    if not isinstance(index.get("_class_name"), str):
        raise ModelError(f"{folder / 'model_index.json'} names no pipeline class, so it is none. {NEXT}")
    for name in components(index):
        _check_component(folder / name)
    return index


def components(index: dict[str, Any]) -> list[str]:
    """Names of the components that ``model_index.json`` expects, each a folder."""
    return [name for name, value in index.items() if not name.startswith("_") and _is_component(value)]


def _is_component(value: object) -> bool:
    """``["diffusers", "WanTransformer3DModel"]``; an optional one that is left out reads ``[null, null]``."""
    return isinstance(value, list) and len(value) == 2 and all(isinstance(part, str) for part in value)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file. Raises ModelError with the path."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}. {NEXT}") from error
    except ValueError as error:
        raise ModelError(f"{path} is truncated or no JSON ({error}). {NEXT}") from error
    if not isinstance(data, dict):
        raise ModelError(f"{path} holds no JSON object. {NEXT}")
    return data


def _check_component(folder: Path) -> None:
    files = [path for path in sorted(folder.glob("*")) if path.is_file()]
    if not files:
        raise ModelError(f"the component folder {folder} is missing or empty. {NEXT}")
    for path in files:
        if path.suffix == ".json":
            _check_json(path)
        elif path.suffix == ".safetensors":
            _check_safetensors(path)
        elif path.stat().st_size == 0:
            raise ModelError(f"{path} is empty. {NEXT}")


def _check_json(path: Path) -> None:
    if path.name.endswith(".index.json"):
        for shard in sorted(set(read_json(path).get("weight_map", {}).values())):
            if not path.with_name(shard).is_file():
                raise ModelError(f"{path.with_name(shard)} is missing, {path.name} lists it. {NEXT}")
        return
    try:
        json.loads(path.read_bytes())
    except ValueError as error:
        raise ModelError(f"{path} is truncated or no JSON ({error}). {NEXT}") from error


def _check_safetensors(path: Path) -> None:
    """Compare a weight file's size with what its header promises."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        header = file.read(length) if 0 < length <= min(size, _MAX_HEADER) else b""
    data = _data_bytes(header)
    if data is None or size != 8 + length + data:
        promised = "a header" if data is None else f"{8 + length + data:,}"
        raise ModelError(f"{path} is truncated or damaged: {size:,} bytes, promised {promised}. {NEXT}")


def _data_bytes(header: bytes) -> int | None:
    """Bytes of tensor data that a safetensors header promises; None when it cannot be read."""
    try:
        tensors = [entry for name, entry in json.loads(header).items() if name != "__metadata__"]
        return max((int(tensor["data_offsets"][1]) for tensor in tensors), default=0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return None


def folder_sha256(folder: Path) -> str:
    """Hash of a model folder: of all files below 64 MiB in total, else of JSON files and the sizes of all."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and ".cache" not in path.parts)
    every = sum(path.stat().st_size for path in files) < _HASH_ALL_BELOW
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
        if every or path.suffix == ".json":
            digest.update(path.read_bytes())
    return digest.hexdigest()
