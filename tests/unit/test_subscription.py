"""Who serves which queues, how deep they are, and where stranded jobs go."""

from __future__ import annotations

from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Job
from callsheet.records.requests import VideoRequest
from callsheet.records.states import State
from callsheet.routing.classes import KNOWN
from callsheet.routing.queues import QueueName, parse_queue
from callsheet.routing.quotas import quotas
from callsheet.routing.reroute import new_home, reroutes, stranded
from callsheet.routing.subscription import subscribe
from tests.support.fleet import gpu

LANE = "wan2.2-t2v-a14b"


def job(name: str, queue: str, need_gib: float) -> Job:
    request = VideoRequest("a", "tiny-wan", "", 64, 64, 17, 8, 8, 5.0, 1, tier=parse_queue(queue).tier)
    return Job(name, State.PENDING, request, need_gib, parse_queue(queue).gpu_class, queue)


def test_pro_before_free_own_class_first_then_from_large_to_small() -> None:
    assert subscribe("h100", 79, classes=["t4", "a100", "h100", "h200", "l40s"]) == (
        "pro.h100",
        "pro.a100",
        "pro.l40s",
        "pro.t4",
        "free.h100",
        "free.a100",
        "free.l40s",
        "free.t4",
    )


def test_an_a100_never_serves_h100() -> None:
    assert subscribe("a100", 80, classes=["h100", "a100"]) == ("pro.a100", "free.a100")


def test_a_lane_stands_before_the_shared_queue_of_its_class() -> None:
    lanes = [("a100", LANE), ("h100", LANE), ("h100", "hunyuanvideo"), ("h200", LANE)]
    assert subscribe("h100", 80, classes=["h100", "a100"], lanes=lanes, tiers=("pro",)) == (
        "pro.h100.hunyuanvideo",
        f"pro.h100.{LANE}",
        "pro.h100",
        f"pro.a100.{LANE}",
        "pro.a100",
    )


def test_its_own_class_is_served_even_when_nobody_named_it() -> None:
    assert subscribe("t4", 15, classes=[]) == ("pro.t4", "free.t4")
    assert subscribe("rtx3090", 24, classes=KNOWN) == ("pro.rtx3090", "free.rtx3090")


def test_a_part_of_a_card_serves_what_it_has_the_memory_for() -> None:
    queues = subscribe("h100", 40, classes=KNOWN, tiers=("pro",))
    assert queues == ("pro.a100-40g", "pro.a10g", "pro.l4", "pro.rtx4090", "pro.t4")
    assert subscribe("h100", 10, classes=KNOWN) == ()


def test_quotas_count_the_workers_of_a_queue() -> None:
    fleet = [
        gpu("h100", queues=("pro.h100", "pro.a100")),
        gpu("a100", queues=("pro.a100",)),
        gpu("a100", 1, queues=()),
    ]
    assert quotas(fleet, 2) == {"pro.h100": 2, "pro.a100": 4}
    assert quotas([], 2) == {}
    assert quotas([gpu("t4", queues=("pro.t4", "pro.t4"))], 3) == {"pro.t4": 3}


def test_stranded_queues_are_those_that_nobody_serves() -> None:
    fleet = [gpu("a100", queues=("free.a100", "free.t4"))]
    assert stranded(["free.h100", "free.a100", "pro.a100"], fleet) == ["free.h100", "pro.a100"]
    assert stranded([], fleet) == []


def test_a_stranded_job_goes_to_the_smallest_live_class_that_fits() -> None:
    fleet = [gpu("a100"), gpu("h200")]
    assert new_home(30, tier="free", gpus=fleet) == QueueName("free", "a100")
    assert new_home(100, tier="pro", gpus=fleet) == QueueName("pro", "h200")


def test_a_stranded_job_that_fits_nowhere_waits() -> None:
    assert new_home(100, tier="free", gpus=[gpu("a100")]) is None
    assert new_home(1, tier="free", gpus=[]) is None
    assert new_home(1, tier="free", gpus=[gpu("a100", queues=("pro.a100",))]) is None  # nobody serves free


def test_a_lane_is_kept() -> None:
    shared = gpu("h100")
    laned = gpu("h100", 1, queues=(f"pro.a100.{LANE}", "pro.a100"))
    assert new_home(70, tier="pro", lane=LANE, gpus=[shared]) is None
    assert new_home(70, tier="pro", lane=LANE, gpus=[shared, laned]) == QueueName("pro", "a100", LANE)


def test_a_part_of_a_card_gives_a_home_by_what_it_serves() -> None:
    assert new_home(30, tier="free", gpus=[gpu("h100", vram_gib=40)]) == QueueName("free", "a100-40g")
    assert new_home(60, tier="free", gpus=[gpu("h100", vram_gib=40)]) is None


def test_queues_of_others_are_no_home() -> None:
    assert new_home(1, tier="free", gpus=[gpu("a100", queues=("celery", "callsheet.control.x.y"))]) is None


def test_reroutes_names_only_the_jobs_that_move() -> None:
    fleet: list[Gpu] = [gpu("a100")]
    jobs = [job("small", "free.h100", 30), job("large", "free.h200", 100), job("home", "free.a100", 30)]
    assert reroutes(jobs, fleet) == {"small": ("a100", "free.a100")}
    assert reroutes(jobs, []) == {}
