"""What a tick would do now, and why: the same look and the same policy, nothing is written or told."""

from __future__ import annotations

from dataclasses import dataclass

from callsheet.beat.look import Eyes, look_at
from callsheet.beat.rebalancer import HEADS
from callsheet.records.decisions import Account
from callsheet.routing.account import account_of
from callsheet.routing.rebalance import Plan, rebalance
from callsheet.routing.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A plan that is not carried out."""

    picture: Snapshot
    plan: Plan
    account: Account  # its decisions in words


def foresee(eyes: Eyes) -> Foreseen:
    """The plan of a tick that ran now."""
    picture = look_at(eyes, eyes.store.lanes(HEADS))
    plan = rebalance(picture)
    return Foreseen(picture, plan, account_of(picture, plan))
