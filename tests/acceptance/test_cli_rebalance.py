"""``callsheet rebalance`` against a real Valkey; workers are played by hand, nobody runs ticks."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from callsheet.settings import load
from tests.support.by_hand import Hand
from tests.support.cli import Cli
from tests.support.jobs import op
from tests.support.valkey import Valkey


@pytest.fixture
def hand(cli: Cli) -> Hand:
    """The workers that the test plays."""
    return Hand(load(env=cli.env))


def contents(valkey: Valkey) -> dict[bytes, Any]:
    """Every key of callsheet with its raw value."""
    client = redis.Redis.from_url(valkey.url)
    return {key: client.dump(key) for key in sorted(client.scan_iter("callsheet:*"))}


def test_a_dry_run_says_what_a_tick_would_do_and_why(cli: Cli, hand: Hand) -> None:
    hand.beat("t4-0@here")
    lease = hand.claim(hand.submit(), "t4-0@here")
    hand.keep(lease, 1)
    hand.store.set_quotas({}, op=op())
    urgent = hand.submit(tier="pro")
    told = cli("rebalance", "--dry-run", "-o", "json").json
    assert (told["gpus"], told["waiting_jobs"]) == (1, 1)
    (serve,) = [one for one in told["decisions"] if one["kind"] == "serve"]
    assert serve["gpus"] == ["t4-0@here"]
    assert serve["queues"] == ["pro.t4", "free.t4"]
    assert "joins pro.t4" in serve["reason"]
    assert told["routes"]["pro.t4"] == ["pro.t4"]
    assert told["quotas"]["pro.t4"] >= 1
    assert 0 < told["targets"]["t4"][""] <= 1.0
    (scale,) = told["gpus_wanted"]
    assert (scale["gpu_class"], scale["have"]) == ("t4", 1)
    assert urgent
    shown = cli("rebalance", "--dry-run").out
    for text in ("serve", "joins pro.t4", "GPUs wanted", "Waiting"):
        assert text in shown, text


def test_a_dry_run_names_who_would_get_a_gpu(cli: Cli, hand: Hand) -> None:
    hand.beat("t4-0@here", queues=("pro.t4", "free.t4"))
    urgent = hand.submit(tier="pro")
    told = cli("rebalance", "--dry-run", "-o", "json").json
    (seat,) = [one for one in told["decisions"] if one["kind"] == "seat"]
    assert (seat["job"], seat["gpus"], seat["victim"]) == (urgent, ["t4-0@here"], None)
    assert "is idle" in seat["reason"]


def test_a_dry_run_writes_nothing(cli: Cli, hand: Hand, valkey: Valkey) -> None:
    hand.beat("t4-0@here")
    hand.submit()
    before = contents(valkey)
    assert cli("rebalance", "--dry-run", "-o", "json").json["decisions"]
    assert contents(valkey) == before


def test_without_gpus_it_says_why_nothing_would_change(cli: Cli) -> None:
    said = cli("rebalance", "--dry-run")
    assert said.code == 0
    assert "no GPU is alive" in said.err


def test_without_dry_run_a_tick_is_asked_for(cli: Cli, valkey: Valkey) -> None:
    said = cli("rebalance", "-o", "json")
    assert (said.code, said.json) == (0, {"asked": True})
    (message,) = valkey.client().lrange("callsheet.control", 0, -1)
    assert "callsheet.tick" in message


def test_without_a_broker_it_says_so(offline: Cli) -> None:
    assert offline("rebalance").code == 5
    assert offline("rebalance", "--dry-run").code == 5
