"""``callsheet gpu`` against a real Valkey; the workers' heartbeats are ours."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from callsheet.settings import load
from tests.support.by_hand import Hand
from tests.support.cli import Cli
from tests.support.valkey import Valkey

WHY = ("--reason", "fan is loud", "--as", "ann@desk")


@pytest.fixture
def hand(cli: Cli) -> Hand:
    """The workers that the test plays."""
    return Hand(load(env=cli.env))


def listed(cli: Cli) -> dict[str, dict[str, Any]]:
    said = cli("gpu", "list", "-o", "json")
    assert said.code == 0, said.err
    return {gpu["name"]: gpu for gpu in said.json["gpus"]}


def test_list_shows_what_each_gpu_does(cli: Cli, hand: Hand) -> None:
    hand.beat("t4-0@here", resident=("tiny-wan",), queues=("pro.t4", "free.t4"))
    hand.beat("h100-0@here", gpu_class="h100", vram_gib=80)
    job_id = hand.submit()
    hand.keep(hand.claim(job_id, "t4-0@here"), 3)
    gpus = listed(cli)
    assert [gpu["state"] for gpu in gpus.values()] == ["idle", "running"]
    busy = gpus["t4-0@here"]
    assert (busy["job_id"], busy["step"], busy["steps"]) == (job_id, 3, 8)
    assert (busy["resident"], busy["vram_gib"], busy["order"]) == (["tiny-wan"], 16, None)
    assert 0 <= busy["seen_ago_s"] < 60
    shown = cli("gpu", "list").out
    for text in ("t4-0@here", "80 GiB", job_id, "3/8", "tiny-wan", "pro.t4 free.t4", " ago"):
        assert text in shown, text


def test_without_gpus_it_says_what_to_start(cli: Cli) -> None:
    said = cli("gpu", "list")
    assert (said.code, said.out) == (0, "")
    assert "callsheet worker" in said.err


def test_cordon_and_uncordon(cli: Cli, hand: Hand) -> None:
    hand.beat("t4-0@here")
    hand.beat("t4-1@here")
    said = cli("gpu", "cordon", "t4-0", "t4-1@here", "t4-0@here", *WHY, "-o", "json")
    assert said.code == 0, said.err
    assert [(gpu["name"], gpu["state"]) for gpu in said.json["gpus"]] == [
        ("t4-0@here", "cordoned"),
        ("t4-1@here", "cordoned"),
    ]
    order = said.json["gpus"][0]["order"]
    assert (order["action"], order["why"], order["who"]) == ("cordoned", "fan is loud", "ann@desk")
    assert order["since_at"] == pytest.approx(hand.store.now(), abs=60)
    assert order["give_up_at"] is None
    assert cli("gpu", "uncordon", "t4-0", "t4-1").code == 0
    assert hand.store.gpu_orders() == {}
    again = cli("gpu", "uncordon", "t4-0")
    assert (again.code, again.err) == (0, "t4-0@here had no order\n")


def test_a_cordoned_gpu_is_why_a_job_waits(cli: Cli, hand: Hand) -> None:
    job_id = hand.submit()
    hand.beat("t4-0@here", queues=(hand.store.get(job_id).queue,))
    cli("gpu", "cordon", "t4-0", *WHY)
    why = cli("job", "show", job_id, "-o", "json").json["waits_for"]
    assert "callsheet gpu uncordon t4-0@here" in why


@pytest.mark.parametrize("order", [("cordon",), ("drain", "--reason", "  ")], ids=" ".join)
def test_an_order_needs_a_reason(cli: Cli, hand: Hand, order: tuple[str, ...]) -> None:
    hand.beat("t4-0@here")
    said = cli("gpu", *order, "t4-0")
    assert (said.code, said.out) == (2, "")
    assert "--reason" in said.err
    assert hand.store.gpu_orders() == {}


def test_an_unknown_gpu_is_not_found_and_nothing_is_ordered(cli: Cli, hand: Hand) -> None:
    hand.beat("t4-0@here")
    said = cli("gpu", "cordon", "t4-0", "t4-9", *WHY, "-o", "json")
    assert (said.code, said.out) == (3, "")
    assert said.error["type"] == "GpuNotFound"
    for text in ("'t4-9'", "t4-0@here", "callsheet gpu list", "--force"):
        assert text in said.error["message"]
    assert cli("gpu", "uncordon", "t4-9").code == 3
    assert hand.store.gpu_orders() == {}


def test_a_name_that_several_have_is_asked_back(cli: Cli, hand: Hand) -> None:
    hand.beat("t4-0@here")
    hand.beat("t4-0@there")
    said = cli("gpu", "cordon", "t4-0", *WHY)
    assert said.code == 2
    assert "t4-0@here, t4-0@there" in said.err
    assert hand.store.gpu_orders() == {}


def test_a_gpu_that_is_gone_is_ordered_by_its_whole_name(cli: Cli, hand: Hand) -> None:
    assert cli("gpu", "cordon", "t4-0@away", *WHY).code == 3
    said = cli("gpu", "cordon", "t4-0@away", *WHY, "--force", "-o", "json")
    gone = said.json["gpus"][0]
    assert (gone["state"], gone["gpu_class"], gone["seen_at"]) == ("gone", None, None)
    assert cli("gpu", "drain", "t4-0", *WHY).code == 0  # known by its order
    assert hand.store.gpu_orders()["t4-0@away"].action == "draining"
    said = cli("gpu", "uncordon", "t4-0", "-o", "json")
    assert said.json["gpus"][0]["order"] is None
    assert hand.store.gpu_orders() == {}


def test_drain_says_when_the_job_is_given_up(cli: Cli, hand: Hand) -> None:
    hand.beat("t4-0@here")
    job_id = hand.submit()
    hand.claim(job_id, "t4-0@here")

    def give_up(*how: str) -> float | None:
        gpu = cli("gpu", "drain", "t4-0", *WHY, *how, "-o", "json").json["gpus"][0]
        assert (gpu["state"], gpu["job_id"]) == ("draining", job_id)
        at: float | None = gpu["order"]["give_up_at"]
        return at

    assert give_up() is None
    assert give_up("--deadline", "15m") == pytest.approx(hand.store.now() + 900, abs=60)
    assert give_up("--preempt") == pytest.approx(hand.store.now(), abs=60)  # the newest order counts
    assert "its job is handed back now" in cli("gpu", "list").out


def test_at_once_and_later_is_a_wrong_call(cli: Cli, hand: Hand) -> None:
    hand.beat("t4-0@here")
    assert cli("gpu", "drain", "t4-0", *WHY, "--preempt", "--deadline", "15m").code == 2
    assert hand.store.gpu_orders() == {}


def test_drain_waits_until_the_gpu_is_idle(cli: Cli, hand: Hand) -> None:
    job_id = hand.submit()
    lease = hand.claim(job_id, "t4-0@here")
    hand.beat("t4-0@here", job_id=job_id)
    short = cli("gpu", "drain", "t4-0", *WHY, "--timeout", "0.2s", "-o", "json")
    assert (short.code, short.out) == (4, "")
    assert f"t4-0@here with job {job_id}" in short.error["message"]
    call = cli.start("gpu", "drain", "t4-0", *WHY, "--preempt", "--wait", "--timeout", "50s", "-o", "json")
    ends = time.monotonic() + 30
    while not hand.store.gpu_orders()["t4-0@here"].give_up_at and time.monotonic() < ends:
        time.sleep(0.05)
    hand.keep(lease, 4)
    hand.hand_back(lease, "drained")
    assert call.poll() is None  # its heartbeat still names the job
    hand.beat("t4-0@here")
    out, err = call.communicate(timeout=50)
    assert call.returncode == 0, err
    assert json.loads(out)["gpus"][0]["state"] == "drained"


def test_a_drained_gpu_gets_nothing_new(cli: Cli, hand: Hand) -> None:
    hand.beat("t4-0@here")
    cli("gpu", "drain", "t4-0", *WHY)
    job_id = hand.submit()
    with pytest.raises(AssertionError, match="cordoned"):
        hand.claim(job_id, "t4-0@here")
    cli("gpu", "uncordon", "t4-0")
    hand.claim(job_id, "t4-0@here")


def test_orders_outlive_the_store_s_crash(tmp_path: Path) -> None:
    with Valkey("--appendfsync", "always", aof=True) as server:
        cli = Cli(tmp_path, CALLSHEET_BROKER_URL=server.url)
        assert cli("gpu", "drain", "t4-0@here", *WHY, "--deadline", "1h", "--force").code == 0
        before = listed(cli)["t4-0@here"]["order"]
        server.kill9()
        server.start()
        assert listed(cli)["t4-0@here"]["order"] == before


def test_without_a_store_it_says_so(offline: Cli) -> None:
    said = offline("gpu", "list", "-o", "json")
    assert (said.code, said.out) == (5, "")
