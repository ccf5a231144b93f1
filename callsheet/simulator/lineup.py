"""Which models a scenario has: listed one by one, or made from the popularity of the names in its traffic."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from callsheet.errors import SettingsError
from callsheet.records.gpus import GPU_CLASSES
from callsheet.simulator.capacity import runs_on
from callsheet.simulator.scenario import Arrival, Fleet, Model
from callsheet.simulator.tables import Table


@dataclass(frozen=True, slots=True)
class Rules:
    """The table ``[models]``."""

    pattern: str = (
        ""  # its letter at rank % length is the size of the model of that rank; "" = models are listed
    )
    fold: int = 0  # models of equal rank % fold are one; 0 = each is its own
    load_base_s: float = 1.0  # loading weights takes this
    load_gb_per_s: float = 2.0  # and their memory over this


@dataclass(frozen=True, slots=True)
class Lineup:
    """How models are made."""

    rules: Rules
    sizes: Mapping[str, Model]  # letter -> a model of that size
    listed: tuple[Model, ...]  # the tables [[model]]

    def cast(self, arrivals: Sequence[Arrival]) -> tuple[tuple[Model, ...], tuple[Arrival, ...]]:
        """The models, and the arrivals with their names.

        Rank 0 is the name with the most arrivals. Raises SettingsError for arrivals of a model that is not
        listed.
        """
        if self.listed:
            return self.listed, self._listed(arrivals)
        ranked = ranks(arrivals)
        names = {name: self._name(rank, name) for rank, name in enumerate(ranked)}
        models: dict[str, Model] = {}
        for rank, name in enumerate(ranked):
            place = rank % (self.rules.fold or len(ranked))
            size = self.sizes[self.rules.pattern[place % len(self.rules.pattern)]]
            models.setdefault(names[name], replace(size, name=names[name]))
        return tuple(models.values()), tuple(replace(each, model=names[each.model]) for each in arrivals)

    def _name(self, rank: int, name: str) -> str:
        return f"m{rank % self.rules.fold}" if self.rules.fold else plain_name(name)

    def _listed(self, arrivals: Sequence[Arrival]) -> tuple[Arrival, ...]:
        known = {model.name for model in self.listed}
        names = {name: plain_name(name) for name in {arrival.model for arrival in arrivals}}
        unknown = sorted(set(names.values()) - known)
        if unknown:
            raise SettingsError(
                f"the traffic has jobs of {', '.join(unknown[:5])}{' ...' if unknown[5:] else ''}, which no "
                f"[[model]] names: list them, or give [models] a pattern instead; "
                f"listed: {', '.join(sorted(known))}"
            )
        return tuple(replace(arrival, model=names[arrival.model]) for arrival in arrivals)


def ranks(arrivals: Sequence[Arrival]) -> list[str]:
    """The models' names, the most frequent first; equal ones by name."""
    counts = Counter(arrival.model for arrival in arrivals)
    return sorted(counts, key=lambda name: (-counts[name], name))


def plain_name(name: str) -> str:
    """A model's name as lanes spell it: lower case, words joined by "-" or "."."""
    return (
        re.sub(r"[^a-z0-9]*-[^a-z0-9]*|\.{2,}", "-", re.sub(r"[^a-z0-9.]+", "-", name.lower())).strip("-.")
        or "model"
    )


def read_lineup(top: Table, fleets: Sequence[Fleet]) -> Lineup:
    """The models of a scenario file; notes its faults."""
    rules = top.table("models").fill(Rules)
    if rules.load_gb_per_s == 0.0:
        top.table("models").fault("load_gb_per_s is 0; allowed: a number above 0")
        rules = replace(rules, load_gb_per_s=1.0)
    inner = top.table("sizes")
    sizes = {
        letter: _model(inner.table(letter), rules, {}, fleets, letter)
        for letter in inner.values
        if rules.pattern == "" or letter in rules.pattern
    }
    listed = tuple(_listed(table, rules, sizes, fleets) for table in top.tables("model"))
    _check(top, rules, sizes, listed)
    return Lineup(rules, sizes, listed)


def _check(top: Table, rules: Rules, sizes: Mapping[str, Model], listed: Sequence[Model]) -> None:
    if bool(rules.pattern) == bool(listed):
        top.fault("models are made by a pattern in [models] or listed in [[model]]: give one of both")
    for letter in sorted(set(rules.pattern) - set(sizes)):
        top.table("models").fault(
            f"pattern has the letter {letter}, which [sizes.{letter}] does not describe"
        )
    for name, count in Counter(model.name for model in listed).items():
        if count > 1:
            top.fault(f"[[model]] {name} stands there {count} times; each name stands for one model")


def _listed(table: Table, rules: Rules, sizes: Mapping[str, Model], fleets: Sequence[Fleet]) -> Model:
    """A table ``[[model]]``."""
    name = table.value("name", "str")
    if name and name != plain_name(name):
        table.fault(f'name is {name!r}; allowed: lower-case letters and digits, words joined by "-" or "."')
    size = table.value("size", "str", "")
    if not size:
        return _model(table, rules, {"name": name}, fleets, name)
    table.known("name", "size", "load_s")
    if size not in sizes:
        table.fault(f"size is {size!r}; allowed: {', '.join(sizes) or 'a letter of [sizes]'}")
        return Model(name, 0.0, {}, 0.0)
    load_s = table.value("load_s", "float", sizes[size].load_s)
    return replace(sizes[size], name=name, load_s=load_s)


def _model(table: Table, rules: Rules, also: Mapping[str, str], fleets: Sequence[Fleet], name: str) -> Model:
    """A table of memory, speed by class and load time. Only classes of the fleet that it fits keep speeds."""
    table.known(*also, "vram_gb", "speed", "load_s")
    vram_gb = table.value("vram_gb", "float")
    load_s = table.value("load_s", "float", rules.load_base_s + vram_gb / rules.load_gb_per_s)
    model = Model(name, vram_gb, _speeds(table.table("speed")), load_s)
    speed = {fleet.gpu_class: model.speed[fleet.gpu_class] for fleet in fleets if runs_on(model, fleet)}
    if model.speed and fleets and not speed:
        table.fault(
            f"it runs nowhere: it needs {vram_gb:g} GB and a speed on a class of the fleet: "
            + ", ".join(f"{fleet.gpu_class} ({fleet.vram_gb:g} GB)" for fleet in fleets)
        )
    return replace(model, speed=speed)


def _speeds(table: Table) -> dict[str, float]:
    """Speed by GPU class; notes unknown classes."""
    table.known(*(each.name for each in GPU_CLASSES))
    speeds = {gpu_class: table.value(gpu_class, "float") for gpu_class in table.values}
    if not any(speeds.values()):
        table.fault("it names no GPU class with a speed above 0; give one, like {a100 = 1.0}")
    return speeds
