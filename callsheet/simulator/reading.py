"""Reads a scenario from a TOML file.

::

    name = "azure-hour"     # the file's name without it
    window_s = 3400         # arrivals at or after it are dropped
    load = 0.9              # traffic is thinned or repeated to this share of capacity; 0 = as it came
    seed = 3
    noise = 0.0             # sigma of the log error of the policy's estimates of work

    [[fleet]]               # one table a class
    class = "a100"
    count = 120
    vram_gb = 80

    [tiers.pro]             # in the order in which they are served; every key may be left out
    share = 0.9
    longest_wait_s = 0
    max_preemptions = 3

    [costs]                 # fields of scenario.Costs; every key may be left out

    [models]                # models by popularity in the traffic, the most frequent name has rank 0
    pattern = "MSSLSMSM"    # the letter at rank % 8 is the model's size
    fold = 8                # names of equal rank % 8 are one model: m0 to m7; 0 = each name is its own model
    load_base_s = 1.0       # loading weights takes this, and their memory over load_gb_per_s
    load_gb_per_s = 2.0

    [sizes.S]
    vram_gb = 20
    speed = {a100 = 1.0, h100 = 1.8, l40s = 0.65}   # load_s = ... may be given, too

    [[model]]               # instead of a pattern: each model by itself
    name = "wan"
    size = "S"              # or vram_gb and speed
    load_s = 11             # may be left out

    [generate]              # fields of generate.Traffic; used when no trace is given
    [[generate.stream]]     # fields of generate.Stream

    [[spike]]               # fields of scenario.Spike
    [[death]]               # fields of scenario.Death, with class for gpu_class
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from callsheet.errors import SettingsError
from callsheet.records.gpus import GPU_CLASSES
from callsheet.simulator.generate import Stream, Traffic, generate
from callsheet.simulator.lineup import Lineup, read_lineup
from callsheet.simulator.scale import scaled
from callsheet.simulator.scenario import Arrival, Costs, Death, Fleet, Scenario, Spike, TierSpec
from callsheet.simulator.spikes import parse_spike, with_spikes
from callsheet.simulator.tables import Table
from callsheet.simulator.trace import read_trace

_TABLES = ("fleet", "tiers", "costs", "models", "sizes", "model", "generate", "spike", "death")


@dataclass(frozen=True, slots=True)
class _Basics:
    """The keys above the tables."""

    name: str = ""
    window_s: float = 3400.0
    load: float = 0.0
    seed: int = 3
    noise: float = 0.0


def read_scenario(
    path: Path,
    *,
    trace: Path | None = None,
    load: float | None = None,
    seed: int | None = None,
    spikes: Sequence[str | Spike] = (),
    window_s: float | None = None,
) -> Scenario:
    """The scenario of a file, with the traffic of ``trace`` or generated traffic.

    ``load``, ``seed`` and ``window_s`` go before the file's, ``spikes`` are added to them.
    Raises SettingsError that lists every fault of the file, or tells what is wrong with the traffic.
    """
    given = {"load": load, "seed": seed, "window_s": window_s}
    values = _toml(path) | {key: value for key, value in given.items() if value is not None}
    top = Table("", values, [])
    told = tuple(parse_spike(each) if isinstance(each, str) else each for each in spikes)
    scenario = _shape(top, path.stem, told)
    lineup = read_lineup(top, scenario.fleets)
    traffic = _traffic(top, lineup)
    _raise(path, top.faults)
    arrivals = read_trace(trace) if trace else _generated(traffic, scenario)
    return _filled(scenario, lineup, arrivals)


def default_trace(path: Path, seed: int | None = None) -> tuple[Arrival, ...]:
    """The traffic that a scenario file makes without a trace, before load, spikes and the fold of models.

    ``read_trace`` would read the same; the same scenario comes of it. ``seed`` goes before the file's. Raises
    SettingsError that lists every fault of the file.
    """
    top = Table("", _toml(path) | ({} if seed is None else {"seed": seed}), [])
    scenario = _shape(top, path.stem, ())
    traffic = _traffic(top, read_lineup(top, scenario.fleets))
    _raise(path, top.faults)
    return _generated(traffic, scenario)


def _toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsError(f"scenario {path} does not exist: name a TOML file that does") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"scenario {path} cannot be read as TOML: {error}. Correct it.") from None


def _raise(path: Path, faults: Sequence[str]) -> None:
    """Raises SettingsError when there are faults."""
    if faults:
        lines = "\n".join(f"  {fault}" for fault in dict.fromkeys(faults))
        raise SettingsError(f"scenario {path} cannot be simulated; correct this in it:\n{lines}")


def _shape(top: Table, name: str, told: Sequence[Spike]) -> Scenario:
    """All but models and traffic; notes faults."""
    basics = top.fill(_Basics, beside=_TABLES)
    if basics.window_s == 0.0:
        top.fault("window_s is 0; allowed: a number above 0")
    scenario = Scenario(
        name=basics.name or name,
        fleets=_fleets(top),
        models=(),
        tiers=_tiers(top),
        arrivals=(),
        window_s=basics.window_s,
        costs=_costs(top),
        spikes=(*(table.fill(Spike) for table in top.tables("spike")), *told),
        seed=basics.seed,
        load=basics.load,
        noise=basics.noise,
    )
    _check_spikes(top, scenario)
    return replace(scenario, deaths=_deaths(top, scenario.fleets))


def _fleets(top: Table) -> tuple[Fleet, ...]:
    known = [gpu_class.name for gpu_class in GPU_CLASSES]
    fleets: dict[str, Fleet] = {}
    for table in top.tables("fleet"):
        fleet = table.fill(Fleet, renamed={"gpu_class": "class"})
        if fleet.gpu_class and fleet.gpu_class not in known:
            table.fault(f"class is {fleet.gpu_class!r}; allowed: {', '.join(known)}")
        if fleet.gpu_class in fleets:
            table.fault(f"class {fleet.gpu_class} stands there twice; give it once, with all its GPUs")
        if "count" in table.values and not fleet.count:
            table.fault("count is 0; allowed: a whole number from 1 up")
        fleets[fleet.gpu_class] = fleet
    if not fleets:
        top.fault("no GPUs; give at least one table [[fleet]]")
    return tuple(fleets.values())


def _tiers(top: Table) -> tuple[TierSpec, ...]:
    inner = top.table("tiers")
    tiers = tuple(inner.table(name).fill(TierSpec, name=name) for name in inner.values)
    for tier in tiers:
        if re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", tier.name) is None:
            inner.fault(f"tier {tier.name!r}; allowed: lower-case letters and digits, words joined by '-'")
    shares = sum(tier.share for tier in tiers)
    if shares > 1.0 + 1e-9:
        inner.fault(f"the shares add up to {shares:g}; allowed: 1 at most")
    if not tiers:
        top.fault("no tiers; give at least one table, like [tiers.pro]")
    return tiers


def _costs(top: Table) -> Costs:
    table = top.table("costs")
    costs = table.fill(Costs)
    for key in ("tick_s", "save_every_s"):
        if key in table.values and getattr(costs, key) == 0.0:
            table.fault(f"{key} is 0; allowed: a number above 0")
    return costs


def _deaths(top: Table, fleets: Sequence[Fleet]) -> tuple[Death, ...]:
    counts = {fleet.gpu_class: fleet.count for fleet in fleets}
    deaths = []
    for table in top.tables("death"):
        death = table.fill(Death, renamed={"gpu_class": "class"})
        if death.gpu_class and death.count > counts.get(death.gpu_class, 0):
            table.fault(
                f"{death.count} {death.gpu_class} cannot die: the fleet has {counts.get(death.gpu_class, 0)}"
            )
        deaths.append(death)
    return tuple(sorted(deaths, key=lambda death: death.at_s))


def _check_spikes(top: Table, scenario: Scenario) -> None:
    tiers = [tier.name for tier in scenario.tiers]
    for number, spike in enumerate(scenario.spikes, start=1):
        if spike.tier and spike.tier not in tiers:
            top.fault(f"spike {number} is of tier {spike.tier}; allowed: {', '.join(tiers)}")
        if spike.begins_s >= scenario.window_s:
            top.fault(f"spike {number} begins at {spike.begins_s:g} s; allowed: before window_s")
        if spike.lasts_s == 0.0:
            top.fault(f"spike {number} lasts 0 s; allowed: above 0")


def _traffic(top: Table, lineup: Lineup) -> Traffic:
    """What to generate; notes faults."""
    table = top.table("generate")
    streams = tuple(inner.fill(Stream) for inner in table.tables("stream"))
    names = tuple(model.name for model in lineup.listed)
    traffic = table.fill(Traffic, beside=("stream",), names=names, streams=streams or Traffic().streams)
    for key in ("span_s", "tenants", "models", "median_s", "most_s", "most_steps"):
        if getattr(traffic, key) == 0:
            table.fault(f"{key} is 0; allowed: above 0")
    for low, high in (("least_s", "most_s"), ("least_steps", "most_steps")):
        if getattr(traffic, low) > getattr(traffic, high):
            table.fault(f"{low} is above {high}; allowed: up to it")
    for stream in traffic.streams:
        if stream.cv == 0.0 or 0.0 < stream.peak <= 1.0:
            table.fault(f"stream {stream.tier}: cv is above 0, and peak is 0 or above 1")
    return traffic


def _generated(traffic: Traffic, scenario: Scenario) -> tuple[Arrival, ...]:
    return generate(traffic, scenario.seed, max(traffic.span_s, scenario.window_s))


def _filled(scenario: Scenario, lineup: Lineup, arrivals: Sequence[Arrival]) -> Scenario:
    """The scenario with its models and arrivals, scaled and with spikes. Raises SettingsError."""
    tiers = [tier.name for tier in scenario.tiers]
    strange = sorted({arrival.tier for arrival in arrivals} - set(tiers))
    if strange:
        raise SettingsError(
            f"the traffic has jobs of tier {', '.join(strange)}; the scenario has {', '.join(tiers)}: "
            f"give it [tiers.{strange[0]}], or take other traffic"
        )
    models, arrivals = lineup.cast(arrivals)
    arrivals = tuple(arrival for arrival in arrivals if arrival.at_s < scenario.window_s)
    if not arrivals:
        raise SettingsError(f"no job arrives before {scenario.window_s:g} s: raise window_s")
    window_s, seed = scenario.window_s, scenario.seed
    if scenario.load:
        arrivals = scaled(arrivals, scenario.fleets, models, window_s=window_s, load=scenario.load, seed=seed)
    arrivals = with_spikes(arrivals, scenario.spikes, window_s=window_s, seed=seed)
    return replace(scenario, models=models, arrivals=arrivals)
