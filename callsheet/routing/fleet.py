"""What the policy is told of this deployment: its lanes, tiers and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from callsheet.routing.estimates import Costs, LaneSpec
from callsheet.routing.tiers import TIERS, TierRule


@dataclass(frozen=True, slots=True)
class FleetRules:
    """Facts that change with the settings, not from tick to tick."""

    lanes: Mapping[str, LaneSpec] = field(default_factory=dict)
    tiers: Sequence[TierRule] = TIERS
    costs: Costs = field(default_factory=Costs)
