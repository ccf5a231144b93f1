"""What doctor makes of what it found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callsheet.cli.checks import (
    Finding,
    Level,
    exit_code,
    judge_broker,
    judge_devices,
    judge_models,
    judge_packages,
    judge_server,
    judge_ticks,
    judge_workers,
)
from callsheet.cli.extras import require_worker, versions
from callsheet.errors import Refused
from callsheet.store.server import SentinelFacts, ServerFacts
from tests.support.fleet import gpu

SOUND = ServerFacts("7.2.4", "primary", 1, "yes", "everysec", "noeviction")
OK, WARN, FAIL = Level.OK, Level.WARN, Level.FAIL


def levels(findings: list[Finding]) -> list[Level]:
    return [finding.level for finding in findings]


def test_a_sound_server() -> None:
    assert levels(judge_server(SOUND)) == [OK] * 5
    assert levels(judge_server(replace(SOUND, appendfsync="always"))) == [OK] * 5
    assert judge_server(SOUND)[-1].detail == "primary, 1 replica connected"


@pytest.mark.parametrize("version", ["6.2.14", "?"])
def test_an_old_or_unknown_server(version: str) -> None:
    assert levels(judge_server(replace(SOUND, version=version))) == [FAIL, OK, OK, OK, OK]


def test_a_server_that_can_lose_records() -> None:
    unsound = replace(
        SOUND, appendonly="no", appendfsync="no", maxmemory_policy="allkeys-lru", role="replica"
    )
    findings = judge_server(unsound)
    assert levels(findings) == [OK, FAIL, FAIL, FAIL, FAIL]
    assert "CONFIG SET appendonly yes" in findings[1].next_step
    assert "CONFIG SET appendfsync everysec" in findings[2].next_step
    assert "`maxmemory-policy noeviction` in redis.conf" in findings[3].next_step
    assert "allkeys-lru" in findings[3].detail


def test_a_broker_of_its_own_may_forget_but_not_evict() -> None:
    findings = judge_broker(replace(SOUND, appendonly="no", appendfsync="", maxmemory_policy="allkeys-lru"))
    assert levels(findings) == [OK, WARN, FAIL, OK]
    assert "every record gets a new ticket" in findings[1].detail


def test_what_a_managed_server_hides_is_a_warning() -> None:
    hidden = ServerFacts("", "", 0, "", "", "")
    assert levels(judge_server(hidden)) == [WARN, WARN, WARN, WARN, OK]
    assert all("cannot be read" in finding.detail for finding in judge_server(hidden)[:4])


def test_sentinels() -> None:
    seen = SentinelFacts(known=3, answering=3, quorum=2, primary="10.0.0.1:6379")
    found = judge_server(replace(SOUND, sentinels=seen))[-1]
    assert (found.level, found.detail) == (OK, "3 of 3 answer, quorum 2, primary 10.0.0.1:6379")
    assert judge_server(replace(SOUND, sentinels=replace(seen, answering=2)))[-1].level is WARN


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
    periods = {"control": 1.0, "deliver": 1.0, "janitor": 60.0}
    report = {"at": 1000.0, "faults": []}
    reports = {"control": report, "deliver": {}, "janitor": {}}
    found = judge_ticks(reports, now=1001, periods=periods)
    assert found[0] == Finding("controllers: control", OK, "last tick 1.0 s ago")
    assert levels(found) == [OK, WARN, OK]  # a stack that has just begun has not been swept yet
    assert levels(judge_ticks({"control": report}, now=1030, periods=periods)) == [WARN]
    assert levels(judge_ticks({"janitor": report}, now=1100, periods=periods)) == [OK]
    assert levels(judge_ticks({"janitor": report}, now=1200, periods=periods)) == [WARN]
    broken = {"control": {**report, "faults": ["reap: boom"]}}
    assert levels(judge_ticks(broken, now=1001, periods=periods)) == [FAIL]
