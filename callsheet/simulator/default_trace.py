"""The traffic that a scenario file makes without a trace, before load, spikes and the fold of models."""

from __future__ import annotations

from pathlib import Path

from callsheet.simulator.lineup import read_lineup
from callsheet.simulator.reading import _generated, _raise, _shape, _toml, _traffic
from callsheet.simulator.scenario import Arrival
from callsheet.simulator.tables import Table


def default_trace(path: Path, seed: int | None = None) -> tuple[Arrival, ...]:
    """As ``read_trace`` would read them: the same scenario comes of it. ``seed`` goes before the file's.

    Raises SettingsError that lists every fault of the file.
    """
    top = Table("", _toml(path) | ({} if seed is None else {"seed": seed}), [])
    scenario = _shape(top, path.stem, ())
    traffic = _traffic(top, read_lineup(top, scenario.fleets))
    _raise(path, top.faults)
    return _generated(traffic, scenario)
