"""Every step of every kind of pipeline and scheduler resumes bit for bit from its bytes, also chained."""

from __future__ import annotations

import pytest
import torch

from tests.support.every_step import check_every_step
from tests.support.tiny_zoo import ZOO

pytestmark = pytest.mark.torch

torch.set_num_threads(1)


@pytest.mark.parametrize("name", ZOO)
def test_every_step_resumes_bit_for_bit(name: str) -> None:
    assert check_every_step(ZOO[name]) >= 4
