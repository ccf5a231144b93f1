"""The arithmetic of ``python -m benchmarks.preemption``: rounds become figures, figures meet goals. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import Any

from benchmarks.figures import SIGNIFICANT, Goal, median, percentile, ratio

ALLOWED_S = 0.1  # beside one step and one save: messages, and the heir's way to its first step


@dataclass(frozen=True, slots=True)
class Exactly:
    """A goal that is one value."""

    figure: str
    value: float

    def met(self, value: float) -> bool:
        """Whether a measured value is that one."""
        return value == self.value

    @property
    def text(self) -> str:
        """``= 0``; of a yes or no, ``= true``."""
        return f"= {str(self.value).lower()}"


#: As they were asked for. Those of ``step_s`` and ``checkpoint_run_s`` are conditions of the measurement:
#: shorter steps and runs would prove nothing.
GOALS: tuple[Goal | Exactly, ...] = (
    Goal("preempt_latency_over_floor", "<", 1.3),
    Exactly("steps_redone", 0),
    Exactly("bit_identical", True),
    Goal("resume_cost_steps", "<", 1),
    Goal("step_s", ">", 0.5),
    Goal("checkpoint_overhead", "<", 0.01),
    Goal("checkpoint_run_s", ">", 60),
    Goal("recovery_s_p50", "<", 5),
    Goal("recovery_s_max", "<", 10),
)


@dataclass(frozen=True, slots=True)
class Way:
    """From a pro job's submit to its first step, in the order of events. Seconds since the epoch."""

    submitted: float  # ``delay`` is called
    looked: float  # a controller begins a rebalance
    ordered: float  # the order to yield is in the victim's record, the signal about to be sent
    told: float  # the victim's worker has the signal: the flag is up
    step_ended: float  # the victim's step ends
    saved: float  # its checkpoint is whole, and the record points at it
    handed_back: float  # the victim waits again (store)
    freed: float  # the worker's child has left the victim's ticket
    received: float  # the worker has the heir's ticket
    claimed: float  # the heir runs (store)
    first_step: float  # its prompt is encoded: the first step begins

    @property
    def latency_s(self) -> float:
        """The whole way."""
        return self.first_step - self.submitted

    @property
    def save_s(self) -> float:
        """The save: from the step's end until the record points at the checkpoint."""
        return self.saved - self.step_ended

    @property
    def beside_s(self) -> float:
        """The way without the save and without the wait for the victim's step, both of which must be."""
        return self.latency_s - self.save_s - max(self.step_ended - self.told, 0.0)

    def stages_s(self) -> dict[str, float]:
        """Seconds between each two events."""
        names = [field.name for field in fields(self)]
        return {f"{a} to {b}": getattr(self, b) - getattr(self, a) for a, b in pairwise(names)}


@dataclass(frozen=True, slots=True)
class Round:
    """One preemption, and the same film undisturbed."""

    way: Way
    restore_s: float  # from the victim's second claim until it computes again
    step_s: float  # median step of the victim, both attempts
    steps: int  # of the victim
    preempted_after: int  # steps
    steps_computed: int  # by the GPU, for the victim
    steps_recorded: int  # of its attempts in the record
    preemptions: int  # as its record counts them
    gpu_s: float  # GPU-seconds of the victim without loading
    gpu_s_undisturbed: float  # of the same film
    identical: bool  # its film is the undisturbed one, bit for bit

    @property
    def over_floor(self) -> float:
        """Latency in units of one step, one save and what is allowed beside."""
        return self.way.latency_s / (self.step_s + self.way.save_s + ALLOWED_S)

    @property
    def resume_cost_steps(self) -> float:
        """What being preempted cost the victim, in its own steps."""
        return ratio(self.gpu_s - self.gpu_s_undisturbed, self.step_s)

    @property
    def beside_steps(self) -> float:
        """The victim's time on the GPU for stopping and going on, in its own steps; no noise of theirs."""
        stopping_s = self.way.handed_back - self.way.step_ended
        return ratio(stopping_s + self.restore_s, self.step_s)

    def raw(self) -> dict[str, Any]:
        """For the document: times from the submit on."""
        way = {name: shown(at - self.way.submitted) for name, at in asdict(self.way).items()}
        return {**{name: shown(value) for name, value in asdict(self).items() if name != "way"}, "way_s": way}


def of_rounds(rounds: Sequence[Round]) -> dict[str, Any]:
    """Figures of the preemptions. Raises ValueError without any."""
    latencies, over = [one.way.latency_s for one in rounds], [one.over_floor for one in rounds]
    stages = [one.way.stages_s() for one in rounds]
    return {
        "preempt_latency_over_floor": median(over),
        "preempt_latency_over_floor_max": max(over),
        "preempt_latency_s_p50": median(latencies),
        "preempt_latency_s_max": max(latencies),
        "preempt_beside_step_and_save_ms_p50": 1000 * median([one.way.beside_s for one in rounds]),
        "preempt_beside_step_and_save_ms_max": 1000 * max(one.way.beside_s for one in rounds),
        "step_s": median([one.step_s for one in rounds]),
        "save_s": median([one.way.save_s for one in rounds]),
        "steps_redone": sum(one.steps_computed - one.steps for one in rounds),
        "steps_redone_as_recorded": sum(one.steps_recorded - one.steps for one in rounds),
        "resume_cost_steps": median([one.resume_cost_steps for one in rounds]),
        "resume_beside_steps": median([one.beside_steps for one in rounds]),
        "resume_cost_steps_max": max(one.resume_cost_steps for one in rounds),
        "bit_identical": all(one.identical for one in rounds),
        "preempt_stages_ms_p50": {
            name: shown(1000 * median([one[name] for one in stages])) for name in stages[0]
        },
    }


@dataclass(frozen=True, slots=True)
class Run:
    """One undisturbed film."""

    gpu_s: float  # useful GPU-seconds, as its record has them
    cpu_s: float  # CPU-seconds of the process that made it
    saves: int  # checkpoints in the background


@dataclass(frozen=True, slots=True)
class Pair:
    """The same film with saves as computed, and without any."""

    saving: Run
    plain: Run

    @property
    def overhead(self) -> float:
        """Share of the run that saves took, by GPU-seconds; below 0 where noise is larger."""
        return ratio(self.saving.gpu_s, self.plain.gpu_s) - 1

    @property
    def cpu_overhead(self) -> float:
        """The same by CPU time, which other work on the machine disturbs less."""
        return ratio(self.saving.cpu_s, self.plain.cpu_s) - 1


def of_pairs(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Figures of the saves. Raises ValueError without any."""
    return {
        "checkpoint_overhead": median([pair.overhead for pair in pairs]),
        "checkpoint_cpu_overhead": median([pair.cpu_overhead for pair in pairs]),
        "checkpoint_saves_per_run": median([pair.saving.saves for pair in pairs]),
        "checkpoint_run_s": min(run.gpu_s for pair in pairs for run in (pair.saving, pair.plain)),
    }


def of_recoveries(seconds: Sequence[float]) -> dict[str, Any]:
    """Figures of the kills. Raises ValueError without any."""
    return {"recovery_s_p50": percentile(seconds, 0.5), "recovery_s_max": max(seconds)}


def shown(value: Any) -> Any:
    """A figure as the document shows it: four digits, the rest is noise; None for what JSON cannot say."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.{SIGNIFICANT}g}") if math.isfinite(value) else None


def document(figures: Mapping[str, Any], **facts: Any) -> dict[str, Any]:
    """The JSON document: every figure, then each goal that was measured, then the facts."""
    goals = {
        goal.figure: {"goal": goal.text, "met": goal.met(figures[goal.figure])}
        for goal in GOALS
        if goal.figure in figures
    }
    return {**{name: shown(value) for name, value in figures.items()}, "goals": goals, **facts}
