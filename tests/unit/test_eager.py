"""Eager mode before anything is rendered: what is refused, and that no server is asked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import chain, group

from callsheet import generate_video
from callsheet.app import app
from callsheet.errors import IdempotencyConflict, NoGpuFits, RequestError, UnsupportedOption
from callsheet.settings import Settings, load
from callsheet.tasks.eager import eager_store, is_recorded

NOWHERE = "redis://127.0.0.1:1/0"  # nobody listens there
CAT = {"prompt": "a cat", "model": "tiny-wan", "steps": 2}


@pytest.fixture(autouse=True)
def eager(tmp_path: Path) -> Iterator[None]:
    app.use(Settings(data_dir=tmp_path, broker_url=NOWHERE, task_always_eager=True, gpu_classes=("l4",)))
    yield
    app.use(Settings(data_dir=tmp_path))


#: Every way to call it.
WAYS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "delay": lambda request: generate_video.delay(**request),
    "apply_async": lambda request: generate_video.apply_async(kwargs=request),
    "apply": lambda request: generate_video.apply(kwargs=request),
    "a plain call": lambda request: generate_video(**request),
    "a signature": lambda request: generate_video.s(**request)(),
    "a signature's delay": lambda request: generate_video.s(**request).delay(),
    "a group": lambda request: group(generate_video.s(**request))(),
    "a chain": lambda request: chain(generate_video.s(**request), generate_video.si(**CAT))(),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_bad_request_is_refused_at_once(way: str) -> None:
    with pytest.raises(RequestError, match="model") as caught:
        WAYS[way]({"prompt": "", "model": "no-such", "steps": -1})
    assert "steps" in str(caught.value)  # every fault at once


@pytest.mark.parametrize("way", WAYS)
def test_a_job_that_no_gpu_fits_is_refused_at_once(way: str) -> None:
    with pytest.raises(NoGpuFits):
        WAYS[way]({"prompt": "a cat", "model": "hunyuanvideo"})


def test_arguments_given_twice_or_too_many_are_refused() -> None:
    with pytest.raises(RequestError, match="given twice"):
        generate_video.delay("a dog", **CAT)
    with pytest.raises(RequestError, match="at most 2 positional"):
        generate_video.delay("a dog", "tiny-wan", 17)


@pytest.mark.parametrize(
    ("option", "value"),
    [("priority", 9), ("queue", "x"), ("time_limit", 5), ("retry", True), ("nonsense", 1)],
)
@pytest.mark.parametrize("call", [generate_video.apply_async, generate_video.apply])
def test_options_are_refused_by_name(call: Callable[..., Any], option: str, value: object) -> None:
    with pytest.raises(UnsupportedOption, match=option):
        call(kwargs=CAT, **{option: value})


def test_nothing_is_recorded_of_what_is_refused() -> None:
    before = len(eager_store().list_jobs(limit=1000).jobs)
    with pytest.raises(RequestError):
        generate_video.apply_async(kwargs={**CAT, "steps": -1}, task_id="refused-one")
    with pytest.raises(UnsupportedOption):
        generate_video.apply_async(kwargs=CAT, task_id="refused-two", priority=1)
    assert not is_recorded("refused-one")
    assert not is_recorded("refused-two")
    assert len(eager_store().list_jobs(limit=1000).jobs) == before


def test_an_idempotency_key_with_another_body_is_refused() -> None:
    from callsheet.tasks.eager import record_here

    record_here({**CAT, "seed": 1, "idempotency_key": "once"}, "eager-first")
    with pytest.raises(IdempotencyConflict):
        generate_video.delay(**CAT, seed=2, idempotency_key="once")
    eager_store().cancel("eager-first", reason="done with it", op="eager-first-cancel")


def test_nothing_heavy_was_loaded_for_all_that() -> None:
    assert "callsheet.workers.perform" not in sys.modules or "torch" in sys.modules


@pytest.mark.parametrize("text", ["1", "true", "yes"])
def test_the_variable_turns_it_on(text: str) -> None:
    app.use(load({"CALLSHEET_TASK_ALWAYS_EAGER": text, "CALLSHEET_BROKER_URL": NOWHERE}))
    assert app.conf.task_always_eager
    with pytest.raises(RequestError):
        generate_video.delay()


def test_celerys_own_setting_turns_it_on(tmp_path: Path) -> None:
    app.use(Settings(data_dir=tmp_path, broker_url=NOWHERE))
    app.conf.task_always_eager = True
    with pytest.raises(RequestError):
        generate_video.delay()
