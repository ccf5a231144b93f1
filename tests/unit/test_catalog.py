"""The models that ship, and catalog files of operators."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from callsheet.catalog import load_catalog
from callsheet.errors import RequestError, SettingsError
from callsheet.records.models import ModelSpec
from callsheet.routing.fit import need_gib
from callsheet.routing.queues import QueueName
from tests.support.catalogs import TINY_ENTRY, built_in

SHIPPED = {
    "wan2.1-t2v-1.3b": "Wan-AI/Wan2.1-T2V-1.3B-Diffusers",
    "wan2.2-ti2v-5b": "Wan-AI/Wan2.2-TI2V-5B-Diffusers",
    "wan2.2-t2v-a14b": "Wan-AI/Wan2.2-T2V-A14B-Diffusers",
    "ltx-video": "Lightricks/LTX-Video",
    "cogvideox-5b": "zai-org/CogVideoX-5b",
    "hunyuanvideo": "hunyuanvideo-community/HunyuanVideo",
    "mochi-1": "genmo/mochi-1-preview",
    "tiny-wan": "/models/tiny-wan",
    "tiny-ltx": "/models/tiny-ltx",
}
ALL = list(built_in())


def write(folder: Path, entries: dict[str, dict[str, Any]]) -> Path:
    lines = []
    for name, entry in entries.items():
        lines += [f'["{name}"]', *(f"{key} = {json.dumps(value)}" for key, value in entry.items())]
    path = folder / "extra.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def faults(path: Path) -> str:
    with pytest.raises(SettingsError) as caught:
        load_catalog(path, Path("/models"))
    return str(caught.value)


def test_what_ships() -> None:
    catalog = built_in()
    assert {model.name: catalog.resolve_source(model) for model in catalog} == SHIPPED
    assert len(catalog) == len(SHIPPED)
    assert catalog.names == tuple(SHIPPED)
    assert {model.name for model in catalog if model.lane} == {"wan2.2-t2v-a14b", "hunyuanvideo"}


@pytest.mark.parametrize("model", ALL, ids=lambda m: m.name)
def test_numbers_of_one_entry_agree(model: ModelSpec) -> None:
    by_formula = need_gib(replace(model, min_vram_gib=0), model.width, model.height, model.frames)
    assert model.min_vram_gib == math.ceil(by_formula)
    assert model.revision == ("" if model.name.startswith("tiny") else "main")
    assert model.note
    assert model.license
    assert QueueName("pro", "h100", model.name).lane == model.name  # its name can be a lane
    assert all(width % 16 == 0 and height % 16 == 0 for width, height in model.sizes)


@pytest.mark.parametrize(
    ("name", "shape", "sampling"),
    [
        ("wan2.1-t2v-1.3b", (832, 480, 81, 4, 16), (50, 5.0)),
        ("wan2.2-ti2v-5b", (1280, 704, 121, 4, 24), (50, 5.0)),
        ("wan2.2-t2v-a14b", (1280, 720, 81, 4, 16), (40, 4.0)),
        ("ltx-video", (704, 480, 161, 8, 24), (50, 3.0)),
        ("cogvideox-5b", (720, 480, 49, 8, 8), (50, 6.0)),
        ("hunyuanvideo", (1280, 720, 129, 4, 24), (50, 6.0)),
        ("mochi-1", (848, 480, 85, 6, 30), (64, 4.5)),
        ("tiny-wan", (64, 64, 17, 4, 8), (8, 5.0)),
        ("tiny-ltx", (64, 64, 17, 4, 8), (8, 3.0)),
    ],
)
def test_defaults_are_those_of_the_model_cards(
    name: str, shape: tuple[int, ...], sampling: tuple[int, float]
) -> None:
    model = built_in().get(name)
    assert (model.width, model.height, model.frames, model.frame_stride, model.fps) == shape
    assert (model.steps, model.guidance) == sampling


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(
        RequestError, match=r"'wan2\.1-1\.3b' is not in the catalog; did you mean wan2\.1-t2v-1\.3b"
    ):
        built_in().get("wan2.1-1.3b")
    with pytest.raises(RequestError, match=r"allowed: wan2\.1-t2v-1\.3b, wan2\.2-ti2v-5b"):
        built_in().get("???")
    with pytest.raises(RequestError) as caught:
        built_in().get("x" * 100_000)
    assert len(str(caught.value)) < 1000


def test_an_extra_file_adds_and_replaces(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {
            "my-model": TINY_ENTRY
            | {"source": "{models_dir}/mine", "sizes": ["64x64", "128x64"], "lane": True},
            "ltx-video": TINY_ENTRY | {"source": "me/tuned-ltx", "revision": "v2", "weights_gb": 2},
        },
    )
    catalog = load_catalog(str(path), Path("/models"))
    mine, ltx = catalog.get("my-model"), catalog.get("ltx-video")
    assert catalog.resolve_source(mine) == "/models/mine"
    assert mine.sizes == ((64, 64), (128, 64))
    assert mine.lane
    assert not mine.tiling
    assert (ltx.source, ltx.revision, ltx.weights_gb) == ("me/tuned-ltx", "v2", 2.0)
    assert ltx.sizes == ((64, 64),)  # none given: the default size only
    assert len(catalog) == len(SHIPPED) + 1
    assert "tiny-wan" in catalog


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"wieghts_gb": 1.0}, "wieghts_gb is not a key of a model; did you mean weights_gb?"),
        ({"weights_gb": "big"}, "weights_gb = 'big' is not a number"),
        ({"weights_gb": -1.0}, "weights_gb = -1 is no finite number of at least 0"),
        ({"steps": 0}, "steps = 0 is less than 1"),
        ({"steps": True}, "steps = True is not a whole number"),
        ({"steps": 51}, "steps is more than max_steps"),
        ({"fps": 31}, "fps is more than max_fps"),
        ({"guidance": 21.0}, "guidance is more than max_guidance"),
        ({"frames": 37}, "frames is more than max_frames"),
        ({"frames": 16}, "frames and max_frames must be a multiple of 4 plus 1"),
        ({"dtype": "bf16"}, "dtype = 'bf16' is none of bfloat16, float16, float32"),
        ({"source": "just-a-name"}, "is neither a hub id (org/name) nor an absolute folder"),
        ({"source": "org/name"}, "the hub id org/name needs a branch, tag or commit"),
        ({"size": "64*64"}, "size holds '64*64'; write it as 832x480"),
        ({"sizes": ["64x64", "0x64"]}, "sizes holds '0x64'"),
        ({"sizes": "64x64"}, "sizes = '64x64' is not a list"),
        ({"sizes": ["128x64"]}, "size is not among sizes"),
        ({"sizes": ["64x64", "63x64"]}, "odd number of pixels"),
        ({"lane": "yes"}, "lane = 'yes' is neither true nor false"),
    ],
)
def test_a_wrong_entry_is_named_with_file_and_fault(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    path = write(tmp_path, {"my-model": TINY_ENTRY | change})
    message = faults(path)
    assert f"{path} [my-model]: " in message
    assert says in message


def test_all_faults_of_all_entries_come_at_once(tmp_path: Path) -> None:
    path = tmp_path / "extra.toml"
    path.write_text('title = "mine"\n["Bad Name"]\nsource = 3\n[other]\nnote = "x"\n')
    message = faults(path)
    assert "[title]: is not a table" in message
    assert "[Bad Name]: its name is not lower-case" in message
    assert "[Bad Name]: source = 3 is not text" in message
    assert "[other]: weights_gb is missing" in message
    assert message.count("is missing") == 2 * len(TINY_ENTRY) - 1


def test_a_file_that_is_missing_or_not_toml(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in faults(tmp_path / "none.toml")
    path = tmp_path / "broken.toml"
    path.write_text("[a\n")
    assert f"{path} is not TOML" in faults(path)


def test_a_stride_of_one_allows_any_number_of_frames(tmp_path: Path) -> None:
    path = write(tmp_path, {"my-model": TINY_ENTRY | {"frame_stride": 1, "frames": 16, "max_frames": 30}})
    assert load_catalog(path).get("my-model").frames == 16
