"""How much work of a given mix a fleet can do, when nothing is lost: a linear program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from callsheet.errors import SettingsError
from callsheet.routing.optimise import LinearProgram
from callsheet.simulator.scenario import Arrival, Fleet, Model


def capacity(fleets: Sequence[Fleet], models: Sequence[Model], work_by_model: Mapping[str, float]) -> float:
    """Seconds of the reference GPU per second that the fleet does of that mix, with weights always loaded.

    ``work_by_model`` says the mix: only its proportions count.
    Raises SettingsError for a mix without work, and for a model that no GPU of the fleet can run.
    """
    total = sum(work_by_model.values())
    if total <= 0.0:
        raise SettingsError("the traffic holds no work: capacity needs some. Give arrivals before window_s.")
    known = {model.name: model for model in models}
    program = LinearProgram()
    rate = program.variable(gain=1.0)
    used: dict[str, list[int]] = {fleet.gpu_class: [] for fleet in fleets}
    for name, work in sorted(work_by_model.items()):
        terms = _shares(program, fleets, known.get(name), used)
        if work > 0.0 and not terms:
            raise SettingsError(
                f"model {name!r} has jobs, but no GPU of the fleet can run it: give it a vram_gb that "
                "fits and a speed on a class of the fleet"
            )
        program.limit({rate: work / total, **terms}, 0.0)
    for fleet in fleets:
        program.limit(dict.fromkeys(used[fleet.gpu_class], 1.0), fleet.count)
    return program.solve()[rate]


def work_by_model(arrivals: Iterable[Arrival]) -> dict[str, float]:
    """Seconds on the reference GPU that the arrivals ask of each model."""
    work: dict[str, float] = {}
    for arrival in arrivals:
        work[arrival.model] = work.get(arrival.model, 0.0) + arrival.work_s
    return work


def runs_on(model: Model, fleet: Fleet) -> bool:
    """Whether GPUs of that class can run the model."""
    return model.speed.get(fleet.gpu_class, 0.0) > 0.0 and model.vram_gb <= fleet.vram_gb


def _shares(
    program: LinearProgram, fleets: Sequence[Fleet], model: Model | None, used: Mapping[str, list[int]]
) -> dict[int, float]:
    """New variables, the GPUs of each class that serve the model: variable -> minus its speed there."""
    terms: dict[int, float] = {}
    for fleet in fleets:
        if model is not None and runs_on(model, fleet):
            gpus = program.variable()
            terms[gpus] = -model.speed[fleet.gpu_class]
            used[fleet.gpu_class].append(gpus)
    return terms
