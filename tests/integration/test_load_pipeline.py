"""Loading: from a folder, from a damaged one, from a Hub that is not there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import huggingface_hub.constants
import pytest
import torch

from callsheet.errors import ModelError
from callsheet.workers.model_files import folder_sha256
from callsheet.workers.pipelines import best_device, load_pipeline
from tests.support.tiny import TINY_NAMES, tiny_folder

pytestmark = pytest.mark.torch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(tiny_folder("tiny-wan"), tmp_path / "tiny-wan")


FILES = [
    "model_index.json",
    "scheduler/scheduler_config.json",
    "text_encoder/config.json",
    "text_encoder/model.safetensors",
    "tokenizer/tokenizer_config.json",
    "transformer/config.json",
    "transformer/diffusion_pytorch_model.safetensors",
    "vae/config.json",
    "vae/diffusion_pytorch_model.safetensors",
]


@pytest.mark.parametrize("name", TINY_NAMES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_weights_come_in_the_dtype_asked_for(name: str, dtype: str) -> None:
    loaded = load_pipeline(str(tiny_folder(name)), dtype=dtype, device="cpu")
    assert loaded.pipe.transformer.dtype == loaded.pipe.vae.dtype == getattr(torch, dtype)
    assert (loaded.dtype, loaded.device, loaded.commit) == (dtype, "cpu", "")
    assert loaded.files_sha256 == folder_sha256(tiny_folder(name))
    assert loaded.load_s > 0


def test_the_device_is_the_gpu_where_there_is_one() -> None:
    assert best_device() == ("cuda" if torch.cuda.is_available() else "cpu")


def test_loading_says_nothing_on_the_terminal(
    capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    load_pipeline(str(tiny_folder("tiny-wan")), dtype="float32", device="cpu")
    assert "".join(capfd.readouterr()) == ""
    assert [str(warning.message) for warning in recwarn if "torch_dtype" in str(warning.message)] == []


def test_the_list_of_files_to_damage_is_complete(folder: Path) -> None:
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) == FILES


def test_a_missing_folder_names_path_and_next_step(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nowhere does not exist.*callsheet models build-tiny"):
        load_pipeline(str(tmp_path / "nowhere"), dtype="float32")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("keep", [0, 1, 9, 0.5, -1])
def test_any_file_truncated_anywhere_is_named(folder: Path, name: str, keep: float) -> None:
    content = (folder / name).read_bytes()
    length = int(len(content) * keep) if isinstance(keep, float) else len(content[:keep])
    if (folder / name).suffix == ".json":
        content = content.rstrip()
        length = min(length, len(content) - 1)
    (folder / name).write_bytes(content[:length])
    with pytest.raises(ModelError) as raised:
        load_pipeline(str(folder), dtype="float32")
    assert str(folder / name) in str(raised.value)
    assert "callsheet models build-tiny" in str(raised.value)


def test_missing_weights_name_the_folder(folder: Path) -> None:
    (folder / "vae" / "diffusion_pytorch_model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"tiny-wan cannot be loaded.*vae"):
        load_pipeline(str(folder), dtype="float32")


def test_pickled_weights_are_not_opened(folder: Path) -> None:
    weights = folder / "vae" / "diffusion_pytorch_model.safetensors"
    weights.rename(weights.with_suffix(".bin"))
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_pipeline(str(folder), dtype="float32")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"_class_name": "NoSuchPipeline"}, "NoSuchPipeline"),
        ({"transformer": ["diffusers", "NoSuchModel"]}, "NoSuchModel"),
        ({"scheduler": ["diffusers", "AutoencoderKLWan"]}, "cannot be loaded"),
    ],
)
def test_a_pipeline_of_another_kind(folder: Path, change: dict[str, object], said: str) -> None:
    index = json.loads((folder / "model_index.json").read_text())
    (folder / "model_index.json").write_text(json.dumps(index | change))
    with pytest.raises(ModelError, match=said) as raised:
        load_pipeline(str(folder), dtype="float32")
    assert str(folder) in str(raised.value)


def test_a_bad_dtype_is_told_what_there_is() -> None:
    with pytest.raises(ModelError, match=r"'int8'.*bfloat16, float16, float32"):
        load_pipeline(str(tiny_folder("tiny-wan")), dtype="int8")


def test_a_hub_model_that_is_not_cached_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        ModelError, match=r"org/no-such-model at revision v1.*hf download org/no-such-model.*HF_HOME"
    ):
        load_pipeline("org/no-such-model", revision="v1", dtype="float32")


def test_a_later_load_works_after_a_failed_one(folder: Path) -> None:
    (folder / "model_index.json").unlink()
    with pytest.raises(ModelError):
        load_pipeline(str(folder), dtype="float32")
    load_pipeline(str(tiny_folder("tiny-wan")), dtype="float32")
