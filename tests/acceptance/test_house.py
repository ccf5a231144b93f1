"""``tools/venv.sh`` and the Makefile on machines that lack something, told apart by what they say."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("setup.cfg", "pyproject.toml", "constraints.txt", "Makefile", "tools/venv.sh")

#: A Python that answers as a real one would; both numbers are exit codes.
PYTHON = """#!/bin/sh
case "$*" in
    *"sys.version_info < (3, 11)"*) exit {too_old} ;;
    *"import venv, ensurepip"*) exit {no_venv} ;;
    *version_info*) echo 3.12 ;;
    -V) echo Python 3.12.0 ;;
    "-m venv --clear .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    "-m pip --version") ;;
    "-m pip install"*) echo "$*" >>pip.log; exit "$(cat pip.exit)" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with what setting up needs."""
    (tmp_path / "tools").mkdir()
    for name in NEEDED:
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "pip.exit").write_text("0")
    return tmp_path


def python(checkout: Path, *, too_old: int = 0, no_venv: int = 0) -> str:
    """A stand-in interpreter with these answers; its path."""
    path = checkout / f"python-{too_old}-{no_venv}"
    path.write_text(PYTHON.format(too_old=too_old, no_venv=no_venv))
    path.chmod(0o755)
    return str(path)


def set_up(checkout: Path, pythons: str, what: str = "demo") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "tools/venv.sh", what],
        cwd=checkout,
        env={**os.environ, "PYTHON": pythons},
        capture_output=True,
        text=True,
        timeout=30,
    )


def installs(checkout: Path) -> int:
    log = checkout / "pip.log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_an_old_python_is_refused_with_what_to_do(checkout: Path) -> None:
    done = set_up(checkout, python(checkout, too_old=1))
    assert done.returncode == 1
    assert "no Python 3.11 or later found" in done.stderr
    assert "make PYTHON=" in done.stderr


def test_a_python_without_venv_is_refused_with_the_package_to_install(checkout: Path) -> None:
    done = set_up(checkout, python(checkout, no_venv=1))
    assert done.returncode == 1
    assert "apt-get install python3.12-venv" in done.stderr
    assert not (checkout / ".venv").exists()


def test_a_name_that_does_not_run_is_passed_over(checkout: Path) -> None:
    done = set_up(checkout, f"no-such-python {python(checkout, too_old=1)} {python(checkout)}")
    assert done.returncode == 0, done.stderr


def test_the_second_call_installs_nothing(checkout: Path) -> None:
    for _ in range(2):
        assert set_up(checkout, python(checkout)).returncode == 0
    assert installs(checkout) == 1


def test_the_demo_is_content_with_what_development_installed(checkout: Path) -> None:
    set_up(checkout, python(checkout), "dev")
    set_up(checkout, python(checkout), "demo")
    assert installs(checkout) == 1


def test_development_needs_more_than_the_demo(checkout: Path) -> None:
    set_up(checkout, python(checkout), "demo")
    set_up(checkout, python(checkout), "dev")
    assert installs(checkout) == 2


def test_a_changed_setup_is_installed_again(checkout: Path) -> None:
    set_up(checkout, python(checkout))
    with (checkout / "constraints.txt").open("a") as file:
        file.write("six==1.17.0\n")
    set_up(checkout, python(checkout))
    assert installs(checkout) == 2


def test_a_failed_install_is_not_taken_for_done(checkout: Path) -> None:
    (checkout / "pip.exit").write_text("1")
    done = set_up(checkout, python(checkout))
    assert done.returncode == 1
    assert "the installation failed" in done.stderr
    (checkout / "pip.exit").write_text("0")
    assert set_up(checkout, python(checkout)).returncode == 0
    assert installs(checkout) == 2


def test_a_moved_checkout_gets_a_new_venv(checkout: Path) -> None:
    set_up(checkout, python(checkout))
    moved = checkout.rename(checkout.with_name(checkout.name + "-moved"))
    done = set_up(moved, python(moved))
    assert "making .venv" in done.stderr
    assert installs(moved) == 2


def test_clean_leaves_the_users_data(checkout: Path) -> None:
    gone = (".venv/bin", "demo-data/films", "callsheet/__pycache__", "callsheet.egg-info", "build")
    kept = ("callsheet-data/films", "callsheet", "tools")
    for name in gone + kept:
        (checkout / name).mkdir(parents=True, exist_ok=True)
    subprocess.run(["make", "clean"], cwd=checkout, check=True, capture_output=True, timeout=30)
    assert [name for name in gone if (checkout / name).exists()] == []
    assert [name for name in kept if not (checkout / name).exists()] == []


def test_make_alone_says_what_can_be_made(checkout: Path) -> None:
    done = subprocess.run(["make"], cwd=checkout, capture_output=True, text=True, timeout=30)
    named = {line.split()[1] for line in done.stdout.splitlines()}
    assert named >= {"demo", "test", "lint", "bench", "clean"}
