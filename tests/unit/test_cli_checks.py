"""What doctor makes of what it found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callsheet.cli.checks import (
    Finding,
    Level,
    exit_code,
    judge_devices,
    judge_models,
    judge_packages,
    judge_server,
    judge_ticks,
    judge_workers,
)
from callsheet.cli.extras import require_worker, versions
from callsheet.errors import Refused
from tests.support.fleet import gpu

SOUND = {"version": "7.2.4", "appendonly": "yes", "maxmemory_policy": "noeviction", "used_memory": 1}
OK, WARN, FAIL = Level.OK, Level.WARN, Level.FAIL


def levels(findings: list[Finding]) -> list[Level]:
    return [finding.level for finding in findings]


def test_a_sound_server() -> None:
    assert levels(judge_server(SOUND)) == [OK, OK, OK]


@pytest.mark.parametrize("version", ["6.2.14", "?", ""])
def test_an_old_or_unknown_server(version: str) -> None:
    assert levels(judge_server({**SOUND, "version": version})) == [FAIL, OK, OK]


def test_a_server_that_can_lose_records() -> None:
    findings = judge_server({**SOUND, "appendonly": "no", "maxmemory_policy": "allkeys-lru"})
    assert levels(findings) == [OK, FAIL, FAIL]
    assert all(finding.next_step for finding in findings[1:])
    assert "allkeys-lru" in findings[2].detail


def test_exit_codes() -> None:
    fine, odd = Finding("a", OK, ""), Finding("b", WARN, "")
    away, bad = Finding("c", FAIL, "", unreachable=True), Finding("d", FAIL, "")
    assert exit_code([fine, odd]) == 0
    assert exit_code([fine, odd, away, away]) == 5
    assert exit_code([away, bad]) == 1
    assert exit_code([]) == 0


def test_gpus_of_this_machine() -> None:
    assert judge_devices(["h100-0", "a100-0"], "") == Finding("GPUs here", OK, "h100-0, a100-0")
    assert judge_devices([], "no driver").level is WARN


def test_packages() -> None:
    assert judge_packages({"torch": "2.13"}).level is OK
    missing = judge_packages({"torch": "", "av": "18"})
    assert missing.level is WARN
    assert "torch" in missing.detail
    assert "callsheet[worker]" in missing.next_step


def test_packages_are_looked_up_and_refused_by_name() -> None:
    found = versions({"click": "click", "no_such_module": "no-such"})
    assert found["click"]
    assert found["no_such_module"] == ""
    with pytest.raises(Refused, match=r"no_such_module.*callsheet\[worker\]"):
        require_worker("a worker", {"no_such_module": "no-such"})
    require_worker("a worker", {"click": "click"})


def test_models() -> None:
    assert judge_models({"tiny-wan": True}, from_hub=7).level is OK
    missing = judge_models({"tiny-wan": False, "mine": False, "there": True}, from_hub=1)
    assert missing.level is WARN
    assert "callsheet models build-tiny tiny-wan" in missing.next_step
    assert "mine" in missing.next_step


def test_workers() -> None:
    a100 = gpu("a100")
    assert judge_workers([], 0).level is WARN
    assert "1 job waits" in judge_workers([], 1).detail
    alive = judge_workers([a100, replace(a100, job_id="j"), gpu("h100")], 2)
    assert alive == Finding("workers", OK, "2 x a100, 1 x h100; 1 busy, 2 jobs wait")


def test_controllers() -> None:
    report = {"number": 1000, "faults": []}
    reports = {"control": report, "deliver": {}}
    assert judge_ticks(reports, now=1001, tick_s=1)[0] == Finding(
        "controllers: control", OK, "last tick 1.0 s ago"
    )
    assert levels(judge_ticks(reports, now=1001, tick_s=1)) == [OK, WARN]
    assert levels(judge_ticks({"control": report}, now=1030, tick_s=1)) == [WARN]
    assert levels(judge_ticks({"control": {"number": 100}}, now=1030, tick_s=10)) == [OK]
    broken = {"control": {**report, "faults": ["reap: boom"]}}
    assert levels(judge_ticks(broken, now=1001, tick_s=1)) == [FAIL]
