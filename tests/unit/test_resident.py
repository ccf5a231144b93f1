"""Which pipelines stay loaded."""

from __future__ import annotations

import weakref

import pytest

from callsheet.errors import ModelError
from callsheet.workers.pipelines import LoadedPipeline
from callsheet.workers.resident import ResidentModels
from tests.support.stub_pipeline import StubPipeline, loaded_stub

pytestmark = pytest.mark.torch


def new() -> LoadedPipeline:
    return loaded_stub(StubPipeline())


def never() -> LoadedPipeline:
    raise AssertionError("it is resident: nothing to load")


def broken() -> LoadedPipeline:
    raise ModelError("missing")


def test_a_resident_pipeline_is_not_loaded_again() -> None:
    models = ResidentModels(1)
    first = models.get("a", new)
    assert models.get("a", never) is first
    assert models.names == ("a",)


def test_the_least_recently_used_goes_first() -> None:
    models = ResidentModels(2)
    models.get("a", new)
    models.get("b", new)
    models.get("a", never)
    models.get("c", new)
    assert models.names == ("a", "c")


def test_room_is_made_before_the_next_is_loaded() -> None:
    models = ResidentModels(1)
    evicted = weakref.ref(models.get("a", new).pipe)

    def load() -> LoadedPipeline:
        assert evicted() is None
        assert not models.names
        return new()

    models.get("b", load)
    assert models.names == ("b",)


def test_a_failed_load_leaves_the_next_try_free() -> None:
    models = ResidentModels(1)
    with pytest.raises(ModelError):
        models.get("a", broken)
    assert not models.names
    models.get("a", new)
    assert models.names == ("a",)


def test_drop_and_clear() -> None:
    models = ResidentModels(3)
    for name in ("a", "b", "c"):
        models.get(name, new)
    models.drop("b")
    models.drop("unknown")
    assert models.names == ("a", "c")
    models.clear()
    assert not models.names


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="limit"):
        ResidentModels(limit)


def test_weights_beyond_the_memory_of_the_gpu_go_before_the_next_are_loaded() -> None:
    models = ResidentModels(9, vram_gib=80.0)
    models.get("a", new, weights_gib=30.0, need_gib=40.0)
    models.get("b", new, weights_gib=30.0, need_gib=40.0)
    assert models.names == ("a", "b")
    models.get("c", new, weights_gib=10.0, need_gib=30.0)
    assert models.names == ("b", "c")


def test_a_job_that_needs_more_makes_room_though_its_model_is_loaded() -> None:
    models = ResidentModels(9, vram_gib=80.0)
    models.get("a", new, weights_gib=30.0, need_gib=40.0)
    models.get("b", new, weights_gib=30.0, need_gib=40.0)
    models.get("b", never, weights_gib=30.0, need_gib=60.0)
    assert models.names == ("b",)


def test_a_model_too_large_for_the_gpu_is_left_to_fail_alone() -> None:
    models = ResidentModels(9, vram_gib=24.0)
    models.get("a", new, weights_gib=10.0, need_gib=12.0)
    models.get("b", new, weights_gib=60.0, need_gib=70.0)
    assert models.names == ("b",)


def test_what_is_worth_least_goes_first() -> None:
    models = ResidentModels(3, keep=lambda: ("b", "a"))
    for name in ("a", "b", "c"):
        models.get(name, new)
    models.get("d", new)
    assert models.names == ("a", "b", "d")  # c is not named at all
    models.get("e", new)
    models.get("f", new)
    assert models.names == ("a", "b", "f")
    ResidentModels(1, keep=lambda: ("gone",)).get("a", new)


def test_of_what_is_kept_the_last_goes_first() -> None:
    models = ResidentModels(2, keep=lambda: ("b", "a"))
    models.get("b", new)
    models.get("a", new)
    models.get("c", new)
    assert models.names == ("b", "c")
