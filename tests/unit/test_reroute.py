"""Jobs that nobody could serve, and where they go."""

from __future__ import annotations

from callsheet.catalog import load_catalog
from callsheet.routing.fleet import live_rules
from callsheet.routing.queues import QueueName
from callsheet.routing.reroute import new_home, stranded
from callsheet.settings import Settings
from tests.support.fleet import gpu

LANE = "wan2.2-t2v-a14b"
LANES = live_rules(load_catalog(), Settings()).lanes


def test_stranded_queues_are_those_that_no_gpu_runs_whatever_it_subscribes_to() -> None:
    fleet = [gpu("a100", queues=())]
    waiting = [
        "free.h200",
        "free.a100",
        "pro.l40s",
        f"pro.a100.{LANE}",
        f"pro.h200.{LANE}",
        "free.a100.unknown",
    ]
    assert stranded(waiting, fleet, LANES) == ["free.h200", f"pro.h200.{LANE}", "free.a100.unknown"]
    assert stranded([], fleet, LANES) == []
    assert stranded(["free.t4"], [], LANES) == ["free.t4"]


def test_a_small_card_runs_no_lane_that_does_not_fit() -> None:
    assert stranded([f"pro.l40s.{LANE}"], [gpu("l40s")], LANES) == [f"pro.l40s.{LANE}"]


def test_a_stranded_job_goes_to_the_smallest_live_class_that_fits() -> None:
    fleet = [gpu("a100"), gpu("h200")]
    assert new_home(30, tier="free", lane="", gpus=fleet, lanes=LANES) == QueueName("free", "a100")
    assert new_home(100, tier="pro", lane="", gpus=fleet, lanes=LANES) == QueueName("pro", "h200")


def test_a_stranded_job_that_fits_nowhere_waits() -> None:
    assert new_home(100, tier="free", lane="", gpus=[gpu("a100")], lanes=LANES) is None
    assert new_home(1, tier="free", lane="", gpus=[], lanes=LANES) is None
    assert new_home(1, tier="free", lane="unknown", gpus=[gpu("a100")], lanes=LANES) is None


def test_a_lane_is_kept() -> None:
    home = new_home(70, tier="pro", lane=LANE, gpus=[gpu("h100")], lanes=LANES)
    assert home == QueueName("pro", "h100", LANE)
    assert new_home(70, tier="pro", lane=LANE, gpus=[gpu("l40s")], lanes=LANES) is None


def test_a_part_of_a_card_gives_a_home_by_the_memory_it_has() -> None:
    part = [gpu("h100", vram_gib=40)]
    assert new_home(36, tier="free", lane="", gpus=part, lanes=LANES) == QueueName("free", "a100-40g")
    assert new_home(60, tier="free", lane="", gpus=part, lanes=LANES) is None
