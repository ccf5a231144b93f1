"""The public face: these names and no others, each from its home, loading no more than is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import callsheet

PUBLIC = ["Client", "VideoJob", "__version__", "errors", "generate_video"]


def test_these_names_are_public() -> None:
    assert sorted(callsheet.__all__) == PUBLIC


def test_dir_shows_the_public_names_only() -> None:
    assert dir(callsheet) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(callsheet, name) is not None


def test_star_imports_the_public_names_only() -> None:
    names: dict[str, object] = {}
    exec("from callsheet import *", names)
    assert sorted(name for name in names if name != "__builtins__") == PUBLIC


def test_another_name_is_refused_by_name() -> None:
    with pytest.raises(AttributeError, match="'callsheet' has no attribute 'genrate_video'"):
        _ = callsheet.genrate_video


def test_the_names_come_from_their_homes() -> None:
    from callsheet.client import Client
    from callsheet.tasks.generate import generate_video
    from callsheet.tasks.job import VideoJob

    found = (callsheet.Client, callsheet.generate_video, callsheet.VideoJob)
    assert found == (Client, generate_video, VideoJob)


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import callsheet", ("celery", "redis", "torch", "click")),
        ("from callsheet import errors", ("celery", "redis", "torch", "click")),
        ("from callsheet import generate_video", ("torch", "diffusers", "av", "flower")),
    ],
)
def test_an_import_loads_no_more_than_it_needs(statement: str, unwanted: tuple[str, ...]) -> None:
    check = f"import sys\n{statement}\nprint([name for name in {unwanted!r} if name in sys.modules])"
    command = [sys.executable, "-c", check]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
