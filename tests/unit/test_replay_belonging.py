"""Which checkpoints belong to a run, and which of them go on exactly."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
import torch
from diffusers import FlowMatchEulerDiscreteScheduler

from callsheet.workers.pipelines import LoadedPipeline
from callsheet.workers.replay import Belonging, CheckpointRefused, belonging, build_id, check_belongs
from tests.support.loop_pipeline import LoopPipeline
from tests.support.tiny import tiny_request

pytestmark = pytest.mark.torch

REQUEST = tiny_request("stub")


def loaded(**change: Any) -> LoadedPipeline:
    pipe = change.pop("pipe", None) or LoopPipeline(FlowMatchEulerDiscreteScheduler())
    facts: dict[str, Any] = {
        "pipe": pipe,
        "source": "org/model",
        "revision": "main",
        "commit": "c0ffee",
        "files_sha256": "",
        "dtype": "float32",
        "device": "cpu",
        "load_s": 1.0,
    }
    return LoadedPipeline(**(facts | change))


def here(**change: Any) -> Belonging:
    return belonging(loaded(**change), REQUEST)


def test_the_same_run_elsewhere_belongs_and_is_exact() -> None:
    saved = Belonging.from_json(json.loads(json.dumps(here().to_json())))
    assert check_belongs(saved, here(load_s=9.0)) == []


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"commit": "decade"}, "model"),
        ({"files_sha256": "abc"}, "model"),
        ({"source": "org/other"}, "model"),
        ({"dtype": "bfloat16"}, "dtype"),
        (
            {"pipe": LoopPipeline(FlowMatchEulerDiscreteScheduler(shift=3.0))},
            r"scheduler\.shift \(was 1\.0, is 3\.0\)",
        ),
        ({"pipe": type("OtherPipeline", (LoopPipeline,), {})()}, "pipeline"),
    ],
    ids=["commit", "files", "source", "dtype", "scheduler", "pipeline"],
)
def test_another_model_pipeline_or_scheduler_is_another_film(change: dict[str, Any], named: str) -> None:
    with pytest.raises(CheckpointRefused, match=rf"another run: .*{named}.*step 0"):
        check_belongs(here(), here(**change))


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "other"},
        {"negative_prompt": "blurry"},
        {"seed": 2},
        {"width": 128},
        {"height": 128},
        {"frames": 9},
        {"fps": 9},
        {"steps": 5},
        {"guidance": 1.0},
    ],
    ids=str,
)
def test_another_request_is_another_film(change: dict[str, Any]) -> None:
    other = belonging(loaded(), dataclasses.replace(REQUEST, **change))
    name = next(iter(change))
    with pytest.raises(CheckpointRefused, match="prompt_sha256" if "prompt" in name else name):
        check_belongs(belonging(loaded(), REQUEST), other)


def test_who_is_served_decides_no_pixels() -> None:
    served = dataclasses.replace(REQUEST, tenant="me", tier="pro", deadline=5.0, reproducible="strict")
    assert check_belongs(here(), belonging(loaded(), served)) == []


def test_a_checkpoint_that_does_not_say_whose_it_is_is_refused() -> None:
    wrong: list[dict[str, Any]] = [{}, {"must": {}}, {"must": [], "exact": {}}]
    for data in wrong:
        with pytest.raises(CheckpointRefused, match="does not say of which run"):
            Belonging.from_json(data)


def test_the_prompt_is_not_readable() -> None:
    assert REQUEST.prompt not in json.dumps(dataclasses.asdict(here()))


def test_a_folder_is_the_same_model_wherever_it_lies() -> None:
    one = here(source="/a/model", commit="", files_sha256="f00d")
    other = here(source="/b/model", commit="", files_sha256="f00d")
    assert check_belongs(one, other) == []


@pytest.mark.parametrize("name", ["gpu", "torch", "attention", "diffusers"])
def test_another_build_resumes_but_not_exactly(name: str) -> None:
    saved = here()
    saved.exact[name] = "another"
    (told,) = check_belongs(saved, here())
    assert told.startswith(f'{name} (was "another", is ')


def test_batch_tiling_and_compiling_are_told() -> None:
    batched = belonging(loaded(), REQUEST, batch=3)
    assert check_belongs(batched, here()) == ["batch (was 3, is 1)"]
    assert check_belongs(here(tiling=True), here()) == ["tiling (was true, is false)"]
    compiled = LoopPipeline(FlowMatchEulerDiscreteScheduler())
    compiled.brain.compile(backend="eager")
    assert check_belongs(here(pipe=compiled), here()) == ['compiled (was ["brain"], is [])']


def test_a_fact_that_one_side_does_not_know_differs() -> None:
    saved = here()
    del saved.must["fps"]
    with pytest.raises(CheckpointRefused, match="fps"):
        check_belongs(saved, here())


def test_the_build_id_follows_the_build_and_not_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    first = build_id()
    assert first == build_id()
    assert len(first) == 12
    monkeypatch.setenv("DIFFUSERS_ATTN_BACKEND", "flash")
    assert build_id() != first
    monkeypatch.undo()
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        assert build_id() != first
    finally:
        torch.set_num_threads(threads)
