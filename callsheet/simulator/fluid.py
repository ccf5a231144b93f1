"""Work as a fluid that the whole fleet serves at once, at no cost: what waits are compared with.

Tiers are served in strict order, first come first served inside a tier. Under a long queue no policy that
keeps this order can be much better. It is no strict bound of the time to the start: the
fluid serves one job after the other, a fleet begins as many as it has GPUs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from callsheet.simulator.capacity import capacity, work_by_model
from callsheet.simulator.scenario import Arrival, Scenario, Spike


@dataclass(frozen=True, slots=True)
class Fluid:
    """What :func:`fluid` tells."""

    capacity: float  # seconds of the reference GPU per second, of the traffic's mix
    waits_s: Mapping[str, tuple[float, ...]]  # tier -> of each job: from arrival to its own fluid
    arrivals: Sequence[Arrival] = field(repr=False)

    def done_s(self, window_s: float) -> float:
        """Work that is done inside the window: what comes late cannot be done before it comes."""
        arrived = sum(arrival.work_s for arrival in self.arrivals if arrival.at_s < window_s)
        return arrived - _backlog(self.arrivals, self.capacity, window_s)

    def drain_s(self, spike: Spike) -> float:
        """Seconds after a spike's end until the backlog of all tiers is back at its level before the spike.

        0 when it is not above it at the end. Nothing arrives after the window, so it ends at last.
        """
        level = _backlog(self.arrivals, self.capacity, spike.begins_s)
        ends_s = spike.begins_s + spike.lasts_s
        at_s, backlog = ends_s, _backlog(self.arrivals, self.capacity, ends_s)
        for arrival in self.arrivals:
            if arrival.at_s < ends_s:
                continue
            left = backlog - self.capacity * (arrival.at_s - at_s)
            if left <= level:
                break
            at_s, backlog = arrival.at_s, left + arrival.work_s
        return at_s - ends_s + max(0.0, backlog - level) / self.capacity


def fluid(scenario: Scenario) -> Fluid:
    """The fluid's waits for the traffic of a scenario. Raises SettingsError as :func:`capacity` does."""
    rate = capacity(scenario.fleets, scenario.models, work_by_model(scenario.arrivals))
    return fluid_at(rate, [tier.name for tier in scenario.tiers], scenario.arrivals)


def fluid_at(rate: float, tiers: Sequence[str], arrivals: Sequence[Arrival]) -> Fluid:
    """The fluid's waits when ``rate`` seconds of work are served per second; ``arrivals`` in order."""
    lines = {tier: _Line() for tier in tiers}
    now_s = 0.0
    for arrival in arrivals:
        _serve(lines, rate, now_s, arrival.at_s)
        now_s = arrival.at_s
        lines[arrival.tier].add(arrival)
    _serve(lines, rate, now_s, math.inf)
    return Fluid(rate, {tier: tuple(line.waits_s) for tier, line in lines.items()}, arrivals)


@dataclass(slots=True)
class _Line:
    """The fluid of one tier."""

    arrived: float = 0.0  # work so far
    served: float = 0.0  # of it
    starts: list[tuple[float, float]] = field(default_factory=list)  # of each job: arrival, work ahead of it
    waits_s: list[float] = field(default_factory=list)  # of the jobs that were begun

    def add(self, arrival: Arrival) -> None:
        self.starts.append((arrival.at_s, self.arrived))
        self.arrived += arrival.work_s

    def serve(self, rate: float, from_s: float, to_s: float) -> float:
        """Serve what is there, and mark what is begun.

        Returns when the tier is empty, ``to_s`` at the latest.
        """
        empty_s = from_s + (self.arrived - self.served) / rate
        done = self.arrived if empty_s <= to_s else self.served + rate * (to_s - from_s)
        while len(self.waits_s) < len(self.starts) and self.starts[len(self.waits_s)][1] < done:
            at_s, ahead = self.starts[len(self.waits_s)]
            self.waits_s.append(max(0.0, from_s + (ahead - self.served) / rate - at_s))
        self.served = done
        return min(empty_s, to_s)


def _serve(lines: Mapping[str, _Line], rate: float, from_s: float, to_s: float) -> None:
    """Serve the tiers in order over a time without arrivals."""
    for line in lines.values():
        if from_s >= to_s:
            break
        from_s = line.serve(rate, from_s, to_s)


def _backlog(arrivals: Sequence[Arrival], rate: float, until_s: float) -> float:
    """Work of all tiers that waits just before a moment."""
    backlog = now_s = 0.0
    for arrival in arrivals:
        if arrival.at_s >= until_s:
            break
        backlog = max(0.0, backlog - rate * (arrival.at_s - now_s)) + arrival.work_s
        now_s = arrival.at_s
    return max(0.0, backlog - rate * (until_s - now_s))
