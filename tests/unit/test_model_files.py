"""Faults of a model folder are found before anything is loaded. The folder here is made by hand."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from callsheet.errors import ModelError
from callsheet.workers.model_files import check_folder, components, folder_sha256

INDEX = {
    "_class_name": "WanPipeline",
    "_diffusers_version": "0.36.0",
    "boundary_ratio": None,
    "scheduler": ["diffusers", "UniPCMultistepScheduler"],
    "transformer": ["diffusers", "WanTransformer3DModel"],
    "transformer_2": [None, None],
}


def safetensors(data: bytes = b"\0" * 64, promised: int | None = None) -> bytes:
    size = len(data) if promised is None else promised
    tensor = {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}
    header = json.dumps({"__metadata__": {"format": "pt"}, "weight": tensor}).encode()
    return struct.pack("<Q", len(header)) + header + data


WEIGHTS = safetensors()
SHARDS = {"weight_map": {"a": "shard-1.safetensors", "b": "shard-2.safetensors"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "model_index.json", INDEX)
    write(tmp_path / "scheduler" / "scheduler_config.json", {})
    write(tmp_path / "transformer" / "config.json", {})
    write(tmp_path / "transformer" / "diffusion_pytorch_model.safetensors.index.json", SHARDS)
    for shard in ("shard-1", "shard-2"):
        (tmp_path / "transformer" / f"{shard}.safetensors").write_bytes(WEIGHTS)
    return tmp_path


def write(path: Path, data: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(data))


def assert_refused(folder: Path, path: Path, fault: str) -> None:
    with pytest.raises(ModelError) as raised:
        check_folder(folder)
    assert str(path) in str(raised.value)
    assert fault in str(raised.value)
    assert "callsheet models build-tiny" in str(raised.value)


def test_a_whole_folder_passes_and_answers_its_index(folder: Path) -> None:
    assert check_folder(folder) == INDEX


def test_components_are_what_the_index_expects_as_folders() -> None:
    assert components(INDEX) == ["scheduler", "transformer"]


def test_a_missing_folder(tmp_path: Path) -> None:
    assert_refused(tmp_path / "nowhere", tmp_path / "nowhere", "does not exist")


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("")
    assert_refused(tmp_path / "model", tmp_path / "model", "does not exist")


def test_a_missing_index(folder: Path) -> None:
    (folder / "model_index.json").unlink()
    assert_refused(folder, folder / "model_index.json", "cannot read")


@pytest.mark.parametrize(
    "text", ["", "{", '{"_class_name": "Wan', "[]", "{}", '{"_class_name": 1}', "\udcff"]
)
def test_an_index_that_is_none(folder: Path, text: str) -> None:
    (folder / "model_index.json").write_bytes(text.encode(errors="surrogateescape"))
    assert_refused(folder, folder / "model_index.json", "model_index.json")


@pytest.mark.parametrize("name", ["scheduler", "transformer"])
def test_a_missing_or_empty_component(folder: Path, name: str) -> None:
    for path in (folder / name).iterdir():
        path.unlink()
    assert_refused(folder, folder / name, "missing or empty")
    (folder / name).rmdir()
    assert_refused(folder, folder / name, "missing or empty")


def test_a_truncated_config(folder: Path) -> None:
    (folder / "transformer" / "config.json").write_text('{"num_layers":')
    assert_refused(folder, folder / "transformer" / "config.json", "truncated")


def test_a_missing_shard(folder: Path) -> None:
    (folder / "transformer" / "shard-2.safetensors").unlink()
    assert_refused(folder, folder / "transformer" / "shard-2.safetensors", "is missing")


@pytest.mark.parametrize("length", range(len(WEIGHTS)))
def test_weights_truncated_at_any_byte(folder: Path, length: int) -> None:
    path = folder / "transformer" / "shard-1.safetensors"
    path.write_bytes(WEIGHTS[:length])
    assert_refused(folder, path, "truncated")


@pytest.mark.parametrize(
    "content",
    [
        WEIGHTS + b"\0",
        safetensors(promised=65),
        b"\xff" * 200,
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 12) + b'{"a":{"b":1}}'[:12],
        struct.pack("<Q", 26) + b'{"a":{"data_offsets":[0]}}',
    ],
    ids=["too-long", "promises-more", "noise", "no-object", "cut-header", "no-offsets"],
)
def test_weights_that_are_none(folder: Path, content: bytes) -> None:
    path = folder / "transformer" / "shard-1.safetensors"
    path.write_bytes(content)
    assert_refused(folder, path, "truncated or damaged")


def test_an_empty_file_of_another_kind(folder: Path) -> None:
    (folder / "scheduler" / "spiece.model").write_bytes(b"")
    assert_refused(folder, folder / "scheduler" / "spiece.model", "is empty")


def test_the_hash_sees_every_file_of_a_small_folder(folder: Path) -> None:
    before = folder_sha256(folder)
    assert before == folder_sha256(folder)
    (folder / "transformer" / "shard-1.safetensors").write_bytes(safetensors(b"\1" * 64))
    assert folder_sha256(folder) != before


def test_the_hash_sees_names(folder: Path) -> None:
    before = folder_sha256(folder)
    (folder / "transformer" / "config.json").rename(folder / "transformer" / "other.json")
    assert folder_sha256(folder) != before


def test_the_hash_of_a_large_folder_sees_json_and_sizes(folder: Path) -> None:
    large = folder / "transformer" / "shard-1.safetensors"
    with large.open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    before = folder_sha256(folder)
    with large.open("r+b") as file:
        file.write(b"x")
    assert folder_sha256(folder) == before
    with large.open("ab") as file:
        file.write(b"x")
    assert folder_sha256(folder) != before
