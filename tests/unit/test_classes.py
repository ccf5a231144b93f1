"""Known classes, and who may serve which."""

from __future__ import annotations

import pytest

from callsheet.errors import SettingsError
from callsheet.routing.classes import KNOWN, by_name, covers, live_classes, parse_declared, smallest_first
from tests.support.fleet import gpu


def test_the_table_is_sound() -> None:
    for name, known in KNOWN.items():
        assert name == known.name
        assert 0.9 * known.vram_gib < known.usable_gib < known.vram_gib
        assert known.price > 0
        assert 0 <= known.features <= 3


@pytest.mark.parametrize(
    ("owner", "vram_gib", "needed", "answer"),
    [
        ("h100", 80, "a100", True),
        ("a100", 80, "h100", False),  # same memory, no fp8
        ("h100", 79, "h100", True),  # what NVML really reports
        ("h100", 40, "h100", False),  # half a card
        ("h100", 40, "a100-40g", True),
        ("a10g", 22, "a10g", True),
        ("a10g", 22, "t4", True),
        ("t4", 15, "t4", True),
        ("t4", 15, "a10g", False),
        ("l40s", 44, "a100-40g", True),
        ("l40s", 44, "rtx6000ada", False),
        ("b200", 179, "h200", True),
        ("h200", 140, "b200", False),
        ("rtx3090", 24, "rtx3090", True),  # unknown classes serve their own name only
        ("rtx3090", 24, "t4", False),
        ("h100", 80, "rtx3090", False),
    ],
)
def test_covers(owner: str, vram_gib: int, needed: str, answer: bool) -> None:
    assert covers(vram_gib, owner, needed) is answer


def test_smallest_first_goes_by_memory_then_price() -> None:
    names = [c.name for c in smallest_first(["h100", "a100", "l40s", "t4", "rtx6000ada", "h100", "nonsense"])]
    assert names == ["t4", "rtx6000ada", "l40s", "a100", "h100"]


def test_declared_gpus() -> None:
    assert parse_declared("h100") == (KNOWN["h100"], 80)
    assert parse_declared("h100:40") == (KNOWN["h100"], 40)
    for text in ("h100:", "h100:0", "h100:x", "h100:-1", "h100:4.5"):
        with pytest.raises(SettingsError, match="whole GiB"):
            parse_declared(text)
    with pytest.raises(SettingsError, match=r"'h10' is not known.* known: t4, l4"):
        parse_declared("h10")
    with pytest.raises(SettingsError):
        by_name("")


def test_live_classes_count_whole_cards_only() -> None:
    assert live_classes([gpu("a100"), gpu("h100", vram_gib=40)]) == {"a100"}
    assert live_classes([gpu("a100"), gpu("h100", vram_gib=40), gpu("h100", 1)]) == {"a100", "h100"}
    assert live_classes([]) == frozenset()
