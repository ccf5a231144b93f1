"""``callsheet models`` and ``callsheet config``: what may be asked for, and what is set."""

from __future__ import annotations

from pathlib import Path

import pytest

from callsheet.settings import Settings, describe
from tests.support.cli import Cli


def test_the_models_and_the_default_command(offline: Cli) -> None:
    bare, listed = offline("models", "-o", "json"), offline("models", "list", "-o", "json")
    assert bare.json == listed.json
    names = [model["name"] for model in bare.json["models"]]
    assert {"wan2.1-t2v-1.3b", "hunyuanvideo", "tiny-wan"} <= set(names)
    table = offline("models").out.splitlines()
    assert [line.split()[0] for line in table] == ["model", *names]


def test_one_model(offline: Cli) -> None:
    said = offline("models", "show", "tiny-wan", "-o", "json")
    model = said.json["model"]
    assert model["smallest_gpu_class"] == "t4"
    assert model["limits"]["frame_stride"] == 4
    assert model["source"] == str(offline.folder / "data" / "models" / "tiny-wan")
    assert "a multiple of 4 plus 1" in offline("models", "show", "tiny-wan").out


def test_an_unknown_model_is_not_found(offline: Cli) -> None:
    said = offline("models", "show", "tiny-wam")
    assert (said.code, said.out) == (3, "")
    assert "tiny-wan" in said.err


def test_a_wrong_catalog_is_named(offline: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[broken]\nsource = "x"\n')
    said = offline("models", env={"CALLSHEET_CATALOG": "mine.toml"})
    assert (said.code, said.out) == (2, "")
    assert "mine.toml [broken]" in said.err


def test_config_tells_values_sources_and_hides_secrets(offline: Cli, tmp_path: Path) -> None:
    (tmp_path / "callsheet.toml").write_text("lease_s = 7.5\n")
    keys = {"CALLSHEET_S3_ACCESS_KEY_ID": "id", "CALLSHEET_S3_SECRET_ACCESS_KEY": "hunter2"}
    said = offline("config", "-o", "json", env=keys)
    settings = said.json["settings"]
    assert list(settings) == [row.name for row in describe(Settings())]
    assert settings["lease_s"]["value"] == "7.5"
    assert settings["lease_s"]["unit"] == "s"
    assert settings["lease_s"]["source"].endswith("callsheet.toml: lease_s")
    assert settings["s3_secret_access_key"]["value"] == "***"
    assert "hunter2" not in said.out
    assert "lease_s" in offline("config").out


def test_output_is_taken_at_every_level_and_the_innermost_counts(offline: Cli) -> None:
    documents = [
        offline("-o", "json", "models", "list"),
        offline("models", "-o", "json", "list"),
        offline("-o", "table", "models", "list", "--output=json"),
    ]
    assert documents[0].json == documents[1].json == documents[2].json
    assert not offline("-o", "json", "models", "list", "-o", "table").out.startswith("{")


@pytest.mark.torch
def test_build_tiny_makes_a_model_and_tells_its_folder(offline: Cli) -> None:
    said = offline("models", "build-tiny", "tiny-wan", "-o", "json")
    assert said.code == 0, said.err
    folder = offline.folder / "data" / "models" / "tiny-wan"
    assert said.json == {"models": [{"name": "tiny-wan", "folder": str(folder)}]}
    assert (folder / "model_index.json").is_file()
