"""``make demo``, from a copy of its program, so that a demo in the checkout is left alone."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.support.live import until

ROOT = Path(__file__).resolve().parents[2]
FILMS = 8
RUN_S = 400.0  # under 60 s on an idle machine with two cores


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with the demo's program."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def start(home: Path) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": f"{home}{os.pathsep}{ROOT}"}
    return subprocess.Popen(
        [sys.executable, "-m", "examples.demo"],
        cwd=home,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def processes_of(home: Path) -> list[str]:
    """Command lines of living processes that were started for this folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if str(home / "demo-data").encode() in (path / "environ").read_bytes():
                found.append((path / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


@pytest.mark.torch
@pytest.mark.timeout(2 * RUN_S)
def test_the_demo_makes_every_film_and_leaves_nothing_running(home: Path) -> None:
    demo = start(home)
    out, err = demo.communicate(timeout=RUN_S)
    assert demo.returncode == 0, out + err
    films = sorted((home / "demo-data" / "out").glob("*.mp4"))
    assert len(films) == FILMS
    assert [film.name for film in films if f"demo-data/out/{film.name}" not in out] == []
    assert {film.name.split("-")[1] for film in films} == {"free", "pro"}
    with Image.open(home / "demo-data" / "out" / "films.png") as picture:
        assert picture.height > FILMS * 100
    assert processes_of(home) == []


def test_a_demo_that_is_stopped_early_leaves_nothing_running(home: Path) -> None:
    (home / "demo-data").mkdir()
    for name in ("tiny-wan", "tiny-ltx"):
        model = home / "demo-data" / "models" / name
        model.mkdir(parents=True)
        (model / "model_index.json").touch()  # not built: the demo is stopped before it would be loaded
    demo = start(home)
    log = home / "demo-data" / "stack.log"
    try:
        until(lambda: log.exists() and "workers" in log.read_text(), within_s=60)
        assert processes_of(home)
    finally:
        demo.send_signal(signal.SIGTERM)
        out, err = demo.communicate(timeout=90)
    assert demo.returncode == 130, out + err
    assert processes_of(home) == []


def test_a_second_demo_in_the_same_folder_is_refused(home: Path) -> None:
    (home / "demo-data").mkdir()
    with (home / "demo-data" / "demo.lock").open("w") as lock:
        lock.write("4711")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        demo = start(home)
        _, err = demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert "a demo runs in demo-data already, with process 4711 as its stack" in err
    assert sorted(path.name for path in (home / "demo-data").iterdir()) == ["demo.lock"]


def test_a_demo_whose_models_cannot_be_built_says_why(home: Path) -> None:
    (home / "demo-data").mkdir()
    (home / "demo-data" / "models").write_text("in the way")
    demo = start(home)
    _, err = demo.communicate(timeout=120)
    assert demo.returncode == 1
    assert "demo failed: the tiny models could not be built" in err
    assert str(home / "demo-data" / "models") in err
