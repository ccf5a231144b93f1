"""A plan told as decisions."""

from __future__ import annotations

from dataclasses import replace

from callsheet.records.decisions import LOAD, SEAT, SERVE, Account, Decision
from callsheet.records.lanes import Desired
from callsheet.routing.account import NAMES, account_of
from callsheet.routing.rebalance import rebalance
from callsheet.routing.snapshot import Memory
from tests.support.snapshots import NOW, carried_out, job, lane, lanes, seat, snapshot, waiting

SPECS = lanes(lane("wan", vram_gb=60.0), lane("ltx", vram_gb=60.0))


def of_kind(account: Account, kind: str) -> list[Decision]:
    return [one for one in account.decisions if one.kind == kind]


def test_a_job_that_gets_a_gpu_is_told_with_who_yields_and_why() -> None:
    picture = snapshot([seat(runs=job())], [waiting("pro.a100.wan", 1)], specs=SPECS)
    (told,) = of_kind(account_of(picture, rebalance(picture)), SEAT)
    assert (told.job, told.victim, told.gpus, told.lane) == (
        "pro.a100.wan-0", "victim", ("a100-0@node",), "wan"
    )  # fmt: skip
    assert "yields" in told.reason


def test_weights_that_leave_for_others_are_named() -> None:
    picture = snapshot([seat(warm=["ltx"])], [waiting("free.a100.wan", 3)], specs=SPECS)
    (told,) = of_kind(account_of(picture, rebalance(picture)), LOAD)
    assert (told.lane, told.gpus) == ("wan", ("a100-0@node",))
    assert "ltx leave for it" in told.reason


def test_gpus_that_change_alike_are_told_together_and_not_all_by_name() -> None:
    fleet = [seat(index=index, warm=["wan"]) for index in range(NAMES + 2)]
    (told,) = of_kind(account_of(picture := snapshot(fleet, specs=SPECS), rebalance(picture)), SERVE)
    assert len(told.gpus) == NAMES
    assert "pro.a100.wan" in told.queues
    assert "2 GPUs more" in told.reason


def test_what_a_gpu_joins_and_leaves_is_told() -> None:
    before = {"a100-0@node": Desired(("pro.a100.ltx", "free.a100.ltx"))}
    picture = snapshot([seat(warm=["wan"])], specs=SPECS, desired=before)
    (told,) = of_kind(account_of(picture, rebalance(picture)), SERVE)
    assert "joins pro.a100.wan" in told.reason
    assert "leaves pro.a100.ltx" in told.reason


def test_another_order_of_the_same_queues_is_told_as_that() -> None:
    specs = lanes(lane("wan"), lane("ltx"))
    queued = [waiting("free.a100.wan", 1, key=NOW - 60), waiting("free.a100.ltx", 1)]
    fleet = [seat(warm=["wan", "ltx"])]
    memory = Memory(at=NOW, targets_at=NOW, targets={"a100": {"wan": 1.0, "ltx": 1.0}})
    picture = snapshot(fleet, queued, specs=specs, memory=memory)
    wish = rebalance(picture).desired["a100-0@node"]
    turned = {"a100-0@node": replace(wish, queues=(*wish.queues[:2], wish.queues[3], wish.queues[2]))}
    picture = replace(picture, desired=turned)
    (told,) = of_kind(account_of(picture, rebalance(picture)), SERVE)
    assert told.reason.startswith("takes free.a100.wan earlier or later")


def test_a_plan_that_was_carried_out_leaves_nothing_to_tell() -> None:
    picture = snapshot([seat(warm=["ltx"]), seat(index=1)], [waiting("free.a100.wan", 3)], specs=SPECS)
    plan = rebalance(picture)
    assert not account_of(picture, plan).empty
    after = carried_out(picture, plan)
    assert account_of(after, rebalance(after)).empty


def test_new_targets_are_told_once() -> None:
    picture = snapshot([seat(warm=["wan"])], [waiting("free.a100.wan", 9)], specs=SPECS)
    plan = rebalance(picture)
    assert account_of(picture, plan).targets == {"a100": {"wan": 1.0}}
    again = replace(picture, memory=replace(plan.memory, targets_at=0.0))
    assert account_of(again, rebalance(again)).targets == {}


def test_an_account_reads_back_and_leaves_out_what_is_empty_or_new() -> None:
    one = Decision(SEAT, "why", gpus=("a",), job="j", queues=("q", "r"))
    told = Account((one, Decision(LOAD, "warm")), {"a100": {"wan": 1.0}})
    data = told.to_json()
    assert data["decisions"][1] == {"kind": "load", "reason": "warm"}
    data["decisions"][0]["newer"] = 1
    assert Account.from_json({**data, "at": 7.0, "newer": 1}) == replace(told, at=7.0)
