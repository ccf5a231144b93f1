"""More traffic for a while: reads ``10x@900s+300s:free``, and repeats arrivals."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from callsheet.errors import SettingsError
from callsheet.simulator.scale import repeated
from callsheet.simulator.scenario import Arrival, Spike

_NUMBER = r"\d+(?:\.\d+)?"
_SPIKE = re.compile(
    rf"(?P<factor>{_NUMBER})x@(?P<begins>{_NUMBER})s?\+(?P<lasts>{_NUMBER})s?(?::(?P<tier>[a-z0-9-]+))?",
    re.ASCII,
)


def parse_spike(text: str) -> Spike:
    """A spike from ``<factor>x@<begins>s+<lasts>s[:<tier>]``. Raises SettingsError."""
    match = _SPIKE.fullmatch(text.strip())
    if match is None:
        raise SettingsError(
            f"spike {text!r} is not understood: write <factor>x@<begins>s+<lasts>s, and :<tier> for one tier "
            "only, like 10x@900s+300s:free"
        )
    spike = Spike(float(match["factor"]), float(match["begins"]), float(match["lasts"]), match["tier"] or "")
    if spike.lasts_s == 0.0:
        raise SettingsError(f"spike {text!r} lasts 0 s: give it some seconds, like 10x@900s+300s")
    return spike


def with_spikes(
    arrivals: Sequence[Arrival], spikes: Sequence[Spike], *, window_s: float, seed: int
) -> tuple[Arrival, ...]:
    """The arrivals, those inside each spike ``factor`` times; repeats stay inside the spike and the window.

    Where spikes overlap their factors multiply.
    """
    for number, spike in enumerate(spikes):
        rng = random.Random(f"{seed} spike {number}")  # noqa: S311
        ends_s = min(spike.begins_s + spike.lasts_s, window_s)
        arrivals = [
            copy
            for arrival in arrivals
            for copy in repeated(arrival, _times(arrival, spike, ends_s), rng, ends_s)
        ]
    return tuple(sorted(arrivals, key=lambda arrival: arrival.at_s))


def _times(arrival: Arrival, spike: Spike, ends_s: float) -> float:
    hit = spike.begins_s <= arrival.at_s < ends_s and spike.tier in ("", arrival.tier)
    return spike.factor if hit else 1.0
