"""Tiled decoding, for models whose whole decode has no room on their cards."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from callsheet.errors import ModelError
from callsheet.workers.encode import Encoding
from callsheet.workers.manifest import Attempt, build_manifest
from callsheet.workers.pipelines import _tile, load_pipeline
from tests.support.tiny import tiny_folder, tiny_request

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("tiling", [True, False])
def test_the_catalogs_word_reaches_the_vae_and_the_manifest(tiling: bool) -> None:
    loaded = load_pipeline(str(tiny_folder("tiny-wan")), dtype="float32", device="cpu", tiling=tiling)
    assert loaded.pipe.vae.use_tiling is tiling
    encoding = Encoding(8, 64, 64, 18, "veryfast", 0, 0)
    attempt = Attempt("job", 1, "worker", 0.0, 1.0)
    manifest = build_manifest(tiny_request(), loaded, encoding, attempt, frames_sha256="")
    assert manifest["model"]["tiling"] is tiling


def test_a_vae_that_cannot_tile_is_refused_with_what_to_set() -> None:
    with pytest.raises(ModelError, match="tiling = false"):
        _tile(SimpleNamespace(vae=SimpleNamespace()), "org/name")
