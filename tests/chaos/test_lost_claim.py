"""A claim took effect and the store went away before it answered: the job runs all the same, at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from callsheet.errors import Unreachable
from callsheet.records.states import State
from callsheet.workers import insist
from tests.support.faulty_objects import FaultyObjects
from tests.support.stage import Stage

pytestmark = [pytest.mark.torch, pytest.mark.chaos]


def test_a_claim_without_an_answer_is_asked_again(
    tmp_path: Path, tiny_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, tiny_models, FaultyObjects())
    claim, tokens = stage.store.claim, []

    def deaf(*args: Any, token: str, **kwargs: Any) -> Any:
        answer = claim(*args, token=token, **kwargs)
        tokens.append(token)
        if len(tokens) == 1:
            raise Unreachable("away")
        return answer

    monkeypatch.setattr(stage.store, "claim", deaf)
    monkeypatch.setattr(insist, "PAUSE_S", 0.0)
    job = stage.run(stage.job())
    assert (job.state, job.attempt, job.crashes) == (State.SUCCEEDED, 1, 0)
    assert tokens == tokens[:1] * 2
