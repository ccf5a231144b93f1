"""``callsheet doctor`` finds what is wrong, says what to do, and never stops at the first trouble."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callsheet.beat.tick import ROUNDS
from callsheet.records.gpus import Gpu
from callsheet.settings import load
from callsheet.store import open_store
from tests.support.cli import Cli, Said
from tests.support.valkey import Valkey


@pytest.fixture(scope="module")
def lasting() -> Iterator[Valkey]:
    """A server as doctor wants it: with an append-only file."""
    with Valkey(aof=True) as server:
        yield server


@pytest.fixture
def sound(lasting: Valkey, tmp_path: Path) -> Cli:
    """A deployment with nothing to complain about."""
    lasting.client().flushall()
    cli = Cli(tmp_path, CALLSHEET_BROKER_URL=lasting.url, CALLSHEET_GPUS="h100,a100")
    settings = load(env=cli.env)
    for name in ("tiny-wan", "tiny-ltx"):
        (settings.models_dir / name).mkdir(parents=True)
    store = open_store(settings.store_url, retention_s=settings.retention_s)
    gpu = Gpu("h100-0@here", "h100", 80, "declared-0", "here", 0, queues=("free.t4",), declared=True)
    store.beat_gpu(gpu, ttl_s=60)
    number = int(store.now() / settings.tick_s)
    for name in ROUNDS:
        token = uuid.uuid4().hex
        assert store.begin_tick(name, number, token=token, busy_s=1)
        store.end_tick(name, number, token=token, report={"at": store.now(), "faults": []})
    return cli


def levels(said: Said) -> dict[str, str]:
    return {check["check"]: check["level"] for check in said.json["checks"]}


def finding(said: Said, name: str) -> dict[str, Any]:
    return next(check for check in said.json["checks"] if check["check"] == name)


def test_all_is_well(sound: Cli) -> None:
    said = sound("doctor", "-o", "json")
    assert said.code == 0, said.out
    assert said.json["ok"] is True
    assert set(levels(said).values()) == {"ok"}
    assert finding(said, "GPUs here")["detail"] == "h100-0, a100-0"
    assert finding(said, "workers")["detail"].startswith("1 x h100")


def test_a_server_that_forgets_is_a_failure_with_the_next_step(cli: Cli) -> None:
    said = cli("doctor", "-o", "json")
    assert said.code == 1
    assert said.json["ok"] is False
    assert levels(said)["store"] == "ok"
    assert levels(said)["store: appendonly"] == "fail"
    assert "appendonly yes" in finding(said, "store: appendonly")["next_step"]
    assert levels(said)["workers"] == "warn"
    assert levels(said)["controllers: control"] == "warn"
    assert "build-tiny" in finding(said, "models")["next_step"]


def test_a_broker_of_its_own_is_looked_at_too(sound: Cli, lasting: Valkey) -> None:
    with Valkey("--maxmemory-policy", "allkeys-lru") as broker:
        env = {"CALLSHEET_BROKER_URL": broker.url, "CALLSHEET_STORE_URL": lasting.url}
        said = sound("doctor", "-o", "json", env=env)
    assert said.code == 1
    assert levels(said)["broker: appendonly"] == "warn"
    assert levels(said)["broker: maxmemory-policy"] == "fail"
    assert "CONFIG SET maxmemory-policy" in finding(said, "broker: maxmemory-policy")["next_step"]
    assert levels(said)["store: appendfsync"] == levels(said)["store: role"] == "ok"


def test_an_unreachable_server_is_5_and_the_rest_is_checked(offline: Cli) -> None:
    begin = time.monotonic()
    said = offline("doctor", "-o", "json", env={"CALLSHEET_GPUS": "l4"})
    assert time.monotonic() - begin < 30
    assert said.code == 5
    assert {name for name, level in levels(said).items() if level == "fail"} == {"broker", "store"}
    assert levels(said)["storage"] == levels(said)["data folder"] == levels(said)["GPUs here"] == "ok"


def test_a_storage_that_is_not_writable_fails_beside_an_unreachable_server(
    offline: Cli, tmp_path: Path
) -> None:
    blocked = tmp_path / "a-file"
    blocked.write_text("in the way")
    env = {"CALLSHEET_STORAGE_URL": (blocked / "films").as_uri(), "CALLSHEET_DATA_DIR": str(blocked / "data")}
    said = offline("doctor", "-o", "json", env=env)
    assert said.code == 1
    failed = {name for name, level in levels(said).items() if level == "fail"}
    assert failed == {"broker", "store", "storage", "data folder"}
    assert str(blocked) in finding(said, "storage")["detail"]


def test_a_password_is_never_shown(tmp_path: Path) -> None:
    cli = Cli(tmp_path, CALLSHEET_BROKER_URL="redis://:hunter2@127.0.0.1:1/0")
    for command in (["doctor"], ["config"], ["config", "-o", "json"]):
        said = cli(*command)
        assert said.out
        assert "hunter2" not in said.out + said.err
        if command == ["doctor"]:
            assert "-> start it" in said.out
