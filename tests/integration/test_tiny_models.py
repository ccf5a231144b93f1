"""The tiny models: real pipelines, built whole or not at all."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from callsheet.errors import ModelError
from callsheet.workers.model_files import check_folder, folder_sha256
from callsheet.workers.pipelines import load_pipeline
from callsheet.workers.tiny import build_tiny
from tests.support.full_disk import full_disk
from tests.support.processes import run_python
from tests.support.tiny import TINY_NAMES, film_of, tiny_folder, tiny_request

pytestmark = pytest.mark.torch

KINDS = {"tiny-wan": "WanPipeline", "tiny-ltx": "LTXPipeline"}


def contents(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("name", TINY_NAMES)
def test_a_tiny_model_is_a_small_real_pipeline(name: str) -> None:
    folder = tiny_folder(name)
    assert check_folder(folder)["_class_name"] == KINDS[name]
    assert sum(path.stat().st_size for path in folder.rglob("*")) < 3_000_000
    assert all(path.stat().st_mode & 0o044 for path in folder.rglob("*.safetensors"))


def test_building_leaves_the_callers_random_state_alone(tmp_path: Path) -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    build_tiny("tiny-ltx", tmp_path)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("name", TINY_NAMES)
def test_films_are_worth_looking_at(name: str) -> None:
    frames = film_of(tiny_request(name, frames=9, height=64)).astype(float)
    assert frames.std(axis=(1, 2)).mean() > 15  # texture within a frame
    assert frames.std(axis=0).mean() > 10  # change from frame to frame


def test_a_complete_model_is_kept(tmp_path: Path) -> None:
    target = build_tiny("tiny-ltx", tmp_path)
    before = target.stat().st_ino
    assert build_tiny("tiny-ltx", tmp_path) == target
    assert target.stat().st_ino == before
    assert [path.name for path in tmp_path.iterdir()] == ["tiny-ltx"]


@pytest.mark.parametrize("damage", ["truncated", "no index", "empty folder"])
def test_a_damaged_model_is_replaced(tmp_path: Path, damage: str) -> None:
    target = tmp_path / "tiny-ltx"
    if damage == "empty folder":
        target.mkdir()
    else:
        build_tiny("tiny-ltx", tmp_path)
    if damage == "truncated":
        weights = target / "vae" / "diffusion_pytorch_model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1])
    if damage == "no index":
        (target / "model_index.json").unlink()
    assert folder_sha256(build_tiny("tiny-ltx", tmp_path)) == folder_sha256(tiny_folder("tiny-ltx"))
    assert [path.name for path in tmp_path.iterdir()] == ["tiny-ltx"]


BUILD = """
    import sys
    from pathlib import Path
    from callsheet.workers.tiny import build_tiny

    for number in range(5):
        for name in sys.argv[2:]:
            build_tiny(name, Path(sys.argv[1]) / str(number))
"""


def test_builds_at_the_same_time_do_no_harm_and_give_the_same_bytes(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as builders:
        for built in [builders.submit(run_python, BUILD, tmp_path, *TINY_NAMES) for _ in range(2)]:
            assert built.result(timeout=250) == ""
    for number in range(5):
        assert sorted(path.name for path in (tmp_path / str(number)).iterdir()) == sorted(TINY_NAMES)
        for name in TINY_NAMES:
            assert contents(tmp_path / str(number) / name) == contents(tiny_folder(name))


def test_an_unknown_name_is_told_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"'tiny-sora'.*tiny-wan, tiny-ltx"):
        build_tiny("tiny-sora", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ModelError, match=r"file/tiny-ltx.*CALLSHEET_MODELS_DIR"):
        build_tiny("tiny-ltx", tmp_path / "file")


def test_a_full_disk_keeps_nothing_half_built(tmp_path: Path) -> None:
    with full_disk(50_000), pytest.raises(ModelError, match=r"cannot write the model .*/tiny-ltx"):
        build_tiny("tiny-ltx", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", TINY_NAMES)
def test_the_saved_format_is_diffusers_own(name: str) -> None:
    pipe = load_pipeline(str(tiny_folder(name)), dtype="float32").pipe
    assert (
        type(pipe).__name__ == json.loads((tiny_folder(name) / "model_index.json").read_text())["_class_name"]
    )
    assert not pipe.text_encoder.training
