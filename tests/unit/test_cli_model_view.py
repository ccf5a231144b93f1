"""What is shown of models."""

from __future__ import annotations

from dataclasses import replace

from callsheet.catalog import load_catalog
from callsheet.cli.model_view import model_document, model_facts, model_list, smallest_class
from callsheet.cli.output import to_json
from callsheet.records.models import ModelSpec

CATALOG = load_catalog()
HEAVY = CATALOG.get("wan2.2-t2v-a14b")


def facts(spec: ModelSpec) -> dict[str, str]:
    return {name: value for name, value in model_facts(spec, "here").rows}  # noqa: C416  rows have any length


def test_every_model_can_be_shown() -> None:
    for spec in CATALOG:
        assert to_json(model_document(spec, "here"))
        assert facts(spec)["licence"] == spec.license
    assert len(model_list(list(CATALOG)).rows) == len(CATALOG)


def test_a_heavy_model() -> None:
    document = model_document(HEAVY, HEAVY.source)
    assert document["lane"] == "own"
    assert document["sizes"][0].count("x") == 1
    shown = facts(HEAVY)
    assert "too heavy" in shown["lane"]
    assert "revision" in shown["source"]
    assert "plus 1" in shown["frames"]


def test_a_model_that_fits_nowhere() -> None:
    giant = replace(HEAVY, weights_gb=9999.0)
    assert smallest_class(giant) == ""
    assert model_document(giant, "here")["smallest_gpu_class"] is None
    assert "none" in facts(giant)["smallest GPU"]


def test_any_number_of_frames() -> None:
    assert "multiple" not in facts(replace(HEAVY, frame_stride=1))["frames"]
