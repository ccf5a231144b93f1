"""A full tier refuses at submit: ``callsheet job submit`` on a real Valkey, without controllers."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.routing.admission import ADMISSION, Flows
from callsheet.settings import load
from tests.support.by_hand import Hand
from tests.support.cli import Cli
from tests.support.jobs import op

JOB = ("job", "submit", "a cat", "--model", "tiny-wan", "-o", "json")


@pytest.fixture
def hand(cli: Cli) -> Hand:
    """The workers that the test plays."""
    return Hand(load(env=cli.env))


def looked(hand: Hand, **told: Any) -> None:
    """What a tick leaves for those who submit."""
    seen = Flows(hand.store.now(), **{"capacity": 0.0001, **told})
    hand.store.remember(ADMISSION, seen.to_json(), op=op())


def test_a_full_tier_says_when_to_come_back_and_which_tier_to_take(cli: Cli, hand: Hand) -> None:
    hand.submit()
    hand.submit()
    looked(hand, left={"free": 0.32})  # of 0.16 s each: 3,200 s of waiting; below 0.9 of an hour
    assert cli(*JOB).code == 0
    hand.submit()
    looked(hand, left={"free": 0.64})
    said = cli(*JOB)
    assert (said.code, said.out) == (6, "")
    assert said.error["type"] == "NotAdmitted"
    assert said.error["retry_after_s"] == pytest.approx(6400 - 0.9 * 3600, abs=1)
    for text in ("tier free is full", "4 jobs", "Submit it again in 3160 s, or in tier pro"):
        assert text in said.error["message"], text
    assert sum(hand.store.counts().values()) == 4
    assert cli(*JOB, "--tier", "pro").code == 0


def test_the_bound_is_a_setting(cli: Cli, hand: Hand) -> None:
    for _ in range(4):
        hand.submit()
    looked(hand, left={"free": 0.64})
    assert cli(*JOB, env={"CALLSHEET_FREE_LONGEST_WAIT_S": "0"}).code == 0
    assert cli(*JOB, env={"CALLSHEET_FREE_LONGEST_WAIT_S": "36000"}).code == 0
    assert cli(*JOB).code == 6
