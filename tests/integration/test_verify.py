"""``callsheet models verify``: the real command on a catalog model, on a folder, and where it must say no."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from diffusers import FlowMatchEulerDiscreteScheduler as Euler

from callsheet.catalog import load_catalog
from callsheet.errors import ModelNotFound
from callsheet.workers.__main__ import main
from callsheet.workers.verify import FRAMES, HEIGHT, STEPS, WIDTH, Resumed, Subject, subject_of, verify
from tests.support.cli import Cli
from tests.support.tiny import tiny_folder, tiny_request

pytestmark = pytest.mark.torch

SMALL = ("--size", "64x64", "--frames", "5", "--steps", "3")


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(
        tmp_path,
        CALLSHEET_MODELS_DIR=str(tiny_folder("tiny-wan").parent),
        CALLSHEET_TORCH_THREADS="1",
    )


def test_a_catalog_model_is_resumed_from_every_step(cli: Cli) -> None:
    said = cli("models", "verify", "tiny-wan", *SMALL)
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert [line.partition(":")[0].split() for line in lines[:3]] == [
        ["step", "1"],
        ["step", "2"],
        ["step", "3"],
    ]
    assert all("bit for bit" in line for line in lines)
    assert lines[3] == "tiny-wan: every step resumes bit for bit"


def test_a_folder_is_told_as_json(cli: Cli) -> None:
    folder = str(tiny_folder("tiny-ltx"))
    said = cli("models", "verify", folder, "-o", "json", "--steps", "2", "--size", "64x32")
    assert said.code == 0, said.err
    assert (said.json["model"], said.json["ok"], said.json["reason"]) == (folder, True, "")
    assert [(step["step"], step["exact"]) for step in said.json["steps"]] == [(1, True), (2, True)]
    assert all(step["checkpoint_bytes"] > 10_000 for step in said.json["steps"])


def test_a_wrong_call_starts_nothing(cli: Cli) -> None:
    assert cli("models", "verify", "tiny-wam").code == 3
    assert cli("models", "verify", "tiny-wan", "--size", "64").code == 2
    assert cli("models", "verify", "tiny-wan", "--steps", "0").code == 2


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("--size", "33x33", "32x32, 64x64, 96x64, 128x128"),
        ("--frames", "6", "5 or 9"),
        ("--steps", "101", "1 to 100"),
    ],
)
def test_a_film_that_nobody_may_ask_for_is_not_tried(cli: Cli, option: str, value: str, allowed: str) -> None:
    said = cli("models", "verify", "tiny-wan", option, value)
    assert (said.code, said.out) == (2, "")
    assert f"{option[2:]} = {value}" in said.err.replace("'", "")
    assert f"allowed: {allowed}" in said.err or f"such as {allowed}" in said.err


def test_a_shape_that_a_folders_pipeline_refuses_is_told_in_its_words(
    cli: Cli, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    call = ("verify", str(tiny_folder("tiny-wan")), "--size", "33x33", "--steps", "1")
    assert main(call) == 1
    out, _ = capfd.readouterr()
    assert "divisible by 16" in out
    assert "another size" in out
    assert not caplog.records
    debug = cli("models", *call, env={"CALLSHEET_DEBUG": "1"})
    assert debug.code == 1
    assert "Traceback" in debug.err


def subject(name: str = "tiny-ltx") -> Subject:
    return Subject(str(tiny_folder(name)), "", "float32", False, tiny_request(name, steps=3))


def test_a_model_whose_resume_differs_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that draws from a source that no snapshot knows, seeded anew for each run."""
    hidden = torch.Generator()
    real_step, real_set = Euler.step, Euler.set_timesteps

    @functools.wraps(real_set)
    def set_timesteps(self: Any, *args: Any, **kwargs: Any) -> None:
        hidden.manual_seed(1)
        real_set(self, *args, **kwargs)

    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        (sample,) = real_step(self, *args, **kwargs)
        return (sample + torch.randn(1, generator=hidden),)

    monkeypatch.setattr(Euler, "set_timesteps", set_timesteps)
    monkeypatch.setattr(Euler, "step", step)
    told: list[Resumed] = []
    verdict = verify(subject(), told.append)
    assert not verdict.ok
    assert [step.exact for step in verdict.steps] == [False, False, True]
    assert told == list(verdict.steps)
    assert "differ from the undisturbed run" in told[0].reason


def test_a_model_that_cannot_be_saved_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Euler.set_timesteps

    @functools.wraps(real)
    def set_timesteps(self: Any, *args: Any, **kwargs: Any) -> None:
        real(self, *args, **kwargs)
        self.lock = object()

    monkeypatch.setattr(Euler, "set_timesteps", set_timesteps)
    verdict = verify(subject(), lambda _: None)
    assert not verdict.ok
    assert "scheduler.0.lock is a builtins.object" in verdict.reason


def test_a_model_that_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    verdict = verify(replace(subject(), source=str(tmp_path)), lambda _: None)
    assert not verdict.ok
    assert "model_index.json" in verdict.reason


def test_a_shape_that_the_model_cannot_make_is_told() -> None:
    verdict = verify(replace(subject(), request=tiny_request("tiny-ltx", frames=6)), lambda _: None)
    assert not verdict.ok
    assert "frame_stride" in verdict.reason


def test_defaults_and_what_is_asked_for_instead() -> None:
    catalog = load_catalog("", Path("models"))
    spec = catalog.get("tiny-wan")
    request = subject_of("tiny-wan", catalog).request
    assert (request.width, request.height, request.frames) == (spec.width, spec.height, spec.frames)
    assert request.steps == STEPS
    folder = subject_of(str(tiny_folder("tiny-ltx")), catalog).request
    assert (folder.width, folder.height, folder.frames, folder.steps) == (WIDTH, HEIGHT, FRAMES, STEPS)
    asked = subject_of("tiny-wan", catalog, steps=2, size=(32, 64), frames=5).request
    assert (asked.width, asked.height, asked.frames, asked.steps) == (32, 64, 5, 2)
    with pytest.raises(ModelNotFound):
        subject_of("nope", catalog)


def test_what_cannot_be_resumed_ends_with_1_and_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tiny_folder("tiny-ltx"))
    assert main(["verify", folder, "--frames", "6", "--size", "64x32", "--steps", "1"]) == 1
    assert "frame_stride" in capsys.readouterr().out
    assert main(["verify", folder, "--frames", "6", "--size", "64x32", "--steps", "1", "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False
