"""What the policy is told of this deployment: its lanes, tiers and costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from callsheet.records.models import ModelSpec
from callsheet.routing.classes import KNOWN
from callsheet.routing.estimates import Costs, LaneSpec
from callsheet.routing.fit import default_need_gib
from callsheet.routing.tiers import FREE, PRO, TIERS, TierRule
from callsheet.settings import Settings

LOAD_S = 1.0  # of any weights, beside reading them

#: The lane of the models that share a queue: small enough to count as being everywhere.
SHARED = LaneSpec("", {name: known.speed for name, known in KNOWN.items()})


@dataclass(frozen=True, slots=True)
class FleetRules:
    """Facts that change with the settings, not from tick to tick."""

    lanes: Mapping[str, LaneSpec] = field(default_factory=dict)
    tiers: Sequence[TierRule] = TIERS
    costs: Costs = field(default_factory=Costs)

    def tier(self, name: str) -> TierRule:
        """The rule of a tier; one without shares and rights for a tier that is not known."""
        return next((rule for rule in self.tiers if rule.name == name), TierRule(name))


def live_rules(models: Iterable[ModelSpec], settings: Settings) -> FleetRules:
    """Those of a live deployment: the lane that small models share, and one for each model with its own."""
    own = {spec.name: _lane(spec, settings.load_gb_per_s) for spec in models if spec.lane}
    return FleetRules(lanes={"": SHARED, **own}, tiers=_tiers(settings))


def _tiers(settings: Settings) -> tuple[TierRule, ...]:
    """Pro, then free."""
    free = replace(
        FREE,
        share=settings.free_share,
        max_preemptions=settings.max_preemptions,
        longest_wait_s=settings.free_longest_wait_s,
    )
    return replace(PRO, share=settings.pro_share), free


def _lane(spec: ModelSpec, load_gb_per_s: float) -> LaneSpec:
    """It runs on every class that holds weights and activations at its default shape."""
    needed = default_need_gib(spec)
    speed = {name: known.speed for name, known in KNOWN.items() if known.usable_gib >= needed}
    return LaneSpec(spec.name, speed, needed, LOAD_S + spec.weights_gb / load_gb_per_s)
