"""Memory that a job needs, and the class it waits for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callsheet.errors import NoGpuFits
from callsheet.routing.fit import need_gib
from callsheet.routing.placement import place
from tests.support.catalogs import built_in, spec


@pytest.mark.parametrize(
    ("name", "class_name"),
    [
        ("tiny-wan", "t4"),
        ("tiny-ltx", "t4"),
        ("ltx-video", "rtx4090"),
        ("wan2.1-t2v-1.3b", "rtx4090"),
        ("wan2.2-ti2v-5b", "a100-40g"),
        ("cogvideox-5b", "a100-40g"),
        ("mochi-1", "rtx6000ada"),
        ("hunyuanvideo", "a100"),
        ("wan2.2-t2v-a14b", "a100"),
    ],
)
def test_the_smallest_known_class_of_each_model(name: str, class_name: str) -> None:
    model = spec(name)
    assert place(need_gib(model, model.width, model.height, model.frames), fleet=()) == class_name


def test_need_at_the_default_shape_is_what_the_catalog_says() -> None:
    for model in built_in():
        assert need_gib(model, model.width, model.height, model.frames) == pytest.approx(model.min_vram_gib)


def test_need_follows_pixels_and_frames() -> None:
    model = replace(spec(), weights_gb=10.0, denoise_gb=2.0, decode_gb=5.0, min_vram_gib=1)
    gib = 1e9 / 2**30
    assert need_gib(model, model.width, model.height, model.frames) == pytest.approx((15 * 1.08 + 1) * gib)
    assert need_gib(model, model.width, model.height, 2 * model.frames) == pytest.approx(
        (20 * 1.08 + 1) * gib
    )
    assert need_gib(model, model.width // 2, model.height, model.frames) == pytest.approx(
        (12.5 * 1.08 + 1) * gib
    )


def test_a_measured_minimum_adds_to_every_shape() -> None:
    model = replace(spec(), min_vram_gib=30)
    plain = replace(spec(), min_vram_gib=0)
    more = 30 - need_gib(plain, plain.width, plain.height, plain.frames)
    for frames in (1, 41, 81):
        expected = need_gib(plain, plain.width, plain.height, frames) + more
        assert need_gib(model, model.width, model.height, frames) == pytest.approx(expected)


def test_a_class_of_the_fleet_is_preferred_to_a_smaller_one_that_is_not_there() -> None:
    assert place(1, fleet=["h100", "a100"]) == "a100"  # same memory: the cheaper one
    assert place(1, fleet=["h100"]) == "h100"
    assert place(1, fleet=[]) == "t4"


def test_a_job_too_large_for_the_fleet_waits_for_a_class_that_may_come() -> None:
    assert place(100, fleet=["h100", "a100"]) == "h200"
    assert place(100, fleet=["h100"], allowed=["h100", "b200"]) == "b200"


def test_only_allowed_classes_are_used() -> None:
    assert place(1, fleet=["t4", "h100"], allowed=["h100"]) == "h100"
    assert place(1, fleet=["t4"], allowed=["h100"]) == "h100"


def test_usable_memory_counts_not_nominal() -> None:
    assert place(79.1, fleet=["a100"]) == "a100"
    assert place(79.5, fleet=["a100"]) == "h200"  # an 80 GB card has no 79.5 GiB to give


def test_when_nothing_fits_the_error_says_what_would() -> None:
    with pytest.raises(NoGpuFits) as caught:
        place(100.04, fleet=["a100"], allowed=["a100", "t4"])
    assert str(caught.value) == (
        "the job needs 100.0 GiB of GPU memory, the largest class allowed here is a100 (79.1 GiB usable); "
        "h200 would fit: add it to the setting gpu_classes, or ask for less film"
    )
    with pytest.raises(NoGpuFits, match="no known class fits: ask for fewer frames or pixels"):
        place(500, fleet=["b200"])
