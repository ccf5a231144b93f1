"""The wheel is complete, and what it installs works from a folder that is not the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import callsheet

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE")
TIMEOUT_S = 120


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy, so that nothing is left in the checkout."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in NEEDED:
        shutil.copy(ROOT / name, source / name)
    shutil.copytree(ROOT / "callsheet", source / "callsheet", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    """Every file in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@dataclass(frozen=True)
class Installed:
    """An environment that holds only our wheel, and a folder that is not the checkout."""

    venv: Path
    elsewhere: Path

    def run(self, program: str, *args: str) -> str:
        """Run a program of the environment; its stdout. Fails with all it said."""
        ours = ("PYTHON", "CALLSHEET_")
        env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        env |= {"CALLSHEET_DATA_DIR": str(self.elsewhere / "data")}
        command = [str(self.venv / "bin" / program), *args]
        done = subprocess.run(
            command, cwd=self.elsewhere, env=env, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in an empty environment, which sees the packages it depends on without a download."""
    venv = tmp_path_factory.mktemp("env") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=TIMEOUT_S)
    pip = [sys.executable, "-m", "pip", "--python", str(venv / "bin" / "python")]
    install = [*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, timeout=TIMEOUT_S)
    (site,) = venv.glob("lib/python*/site-packages")
    # A folder on a path file is searched, but its own path files (an editable callsheet) are not read.
    site.joinpath("outer.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return Installed(venv, tmp_path_factory.mktemp("elsewhere"))


def test_every_module_is_in_the_wheel(names: set[str]) -> None:
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "callsheet").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == modules


def test_every_folder_of_the_source_is_a_package() -> None:
    folders = {path.parent for path in (ROOT / "callsheet").rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_data_files_are_in_the_wheel(names: set[str]) -> None:
    scripts = {str(path.relative_to(ROOT)) for path in (ROOT / "callsheet").rglob("*.lua")}
    assert scripts
    assert names >= scripts | {"callsheet/catalog/models.toml", "callsheet/py.typed"}


def test_no_data_file_of_the_source_is_forgotten(names: set[str]) -> None:
    source = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "callsheet").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert source - names == set()


def test_only_our_package_is_in_the_wheel(names: set[str]) -> None:
    tops = {name.split("/")[0] for name in names}
    assert tops == {"callsheet", f"callsheet-{callsheet.__version__}.dist-info"}


def test_the_licence_is_in_the_wheel(names: set[str]) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_metadata_names_licence_version_and_extras(wheel: Path) -> None:
    said = metadata(wheel)
    assert said["License-Expression"] == "Apache-2.0"
    assert said["Version"] == callsheet.__version__
    assert said["Requires-Python"] == ">=3.11"
    assert set(said.get_all("Provides-Extra", [])) == {"embedded", "worker", "s3", "dev"}


def test_the_base_needs_no_torch(wheel: Path) -> None:
    needs = [need for need in metadata(wheel).get_all("Requires-Dist", []) if "extra ==" not in need]
    assert needs
    assert [need for need in needs if need.startswith(("torch", "diffusers", "transformers", "av"))] == []


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_the_installed_package_is_the_one_that_is_imported(installed: Installed) -> None:
    path = installed.run("python", "-c", "import callsheet; print(callsheet.__file__)").strip()
    assert Path(path).is_relative_to(installed.venv)


def test_the_command_line_says_its_version(installed: Installed) -> None:
    assert installed.run("callsheet", "--version") == f"callsheet {callsheet.__version__}\n"


def test_the_command_line_helps(installed: Installed) -> None:
    said = installed.run("callsheet", "-h")
    assert [word for word in ("job", "models", "up", "worker", "doctor", "config") if word not in said] == []


def test_the_command_line_runs_as_a_module(installed: Installed) -> None:
    assert installed.run("python", "-m", "callsheet", "--version").startswith("callsheet ")


def test_the_catalog_is_found(installed: Installed) -> None:
    assert "tiny-wan" in json.dumps(json.loads(installed.run("callsheet", "models", "-o", "json")))


def test_the_task_is_imported_without_torch(installed: Installed) -> None:
    check = (
        "import sys; from callsheet import generate_video; print(generate_video.name, 'torch' in sys.modules)"
    )
    assert installed.run("python", "-c", check) == "callsheet.generate_video False\n"


def test_the_lua_scripts_are_found(installed: Installed) -> None:
    check = "import callsheet.store.redis_store, callsheet.store.scripts; print('ok')"
    assert installed.run("python", "-c", check) == "ok\n"
