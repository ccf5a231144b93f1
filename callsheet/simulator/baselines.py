"""What callsheet is compared with: the ways in which plain Celery shares a fleet."""

from __future__ import annotations

import random
from collections import Counter

from callsheet.errors import SettingsError
from callsheet.simulator.baseline_gpus import Attempt, BaselineGpu, Idle, make_gpus
from callsheet.simulator.baseline_jobs import Job, Queues
from callsheet.simulator.baseline_plans import BASELINES, jobs_for, parts_for, plan_for
from callsheet.simulator.ledger import Ledger
from callsheet.simulator.result import Result, Sample
from callsheet.simulator.scenario import Death, Scenario
from callsheet.simulator.timeline import Timeline

__all__ = ["BASELINES", "run_baseline"]

SAMPLES = 200


def run_baseline(name: str, scenario: Scenario) -> Result:
    """Run one of BASELINES until every job has ended.

    - ``fifo``: one queue.
    - ``two-queues``: one queue per tier, in order; nothing is preempted.
    - ``static``: each tier owns a part of each fleet, in proportion to its share.
    - ``restart``: as two-queues, but a job of the first tier that finds no idle GPU kills one of a later
      tier, whose work and loaded weights are lost.

    An idle GPU takes the first job that fits it; a job takes any idle GPU that fits.
    Raises SettingsError on an unknown name, and when a job fits no GPU or the last one that fits it dies.
    """
    return _Baseline(name, scenario).run()


class _Baseline:
    """Everything of one run."""

    def __init__(self, name: str, scenario: Scenario) -> None:
        self._name, self._scenario = name, scenario
        self._plan = plan_for(name, len(scenario.tiers))
        self._timeline = Timeline()
        self._ledger = Ledger(scenario)
        self._jobs = jobs_for(scenario, self._plan, self._ledger.lives)
        self._queues = Queues(len(scenario.tiers) or 1)
        self._gpus = list(make_gpus(scenario.fleets, parts_for(scenario, self._plan, self._jobs)))
        self._idle = Idle()
        self._chance = random.Random(scenario.seed)  # noqa: S311  not a secret
        self._waiting = Counter({tier.name: 0 for tier in scenario.tiers})
        self._samples: list[Sample] = []

    def run(self) -> Result:
        """Until the last job has ended and the window is over."""
        for gpu in self._gpus:
            self._idle.add(gpu)
        for index in range(SAMPLES + 1):
            self._timeline.at(self._scenario.window_s * index / SAMPLES, self._sample)
        for job in self._jobs:
            self._timeline.at(job.life.arrival.at_s, lambda j=job: self._place(j))  # type: ignore[misc]
        for death in self._scenario.deaths:
            self._timeline.at(death.at_s, lambda d=death: self._die(d))  # type: ignore[misc]
        self._timeline.run(self._goes_on)
        self._check_all_ended()
        return self._result()

    def _goes_on(self) -> bool:
        return self._ledger.ended < len(self._jobs) or len(self._samples) <= SAMPLES

    # -- jobs

    def _place(self, job: Job, again: bool = False) -> None:
        """On an idle GPU, on one that it takes from another job, or in its queue."""
        gpu = self._idle.take(job, self._chance)
        if gpu is None and self._plan.kills and job.rank == 0:
            gpu = self._kill_for(job)
        if gpu is not None:
            self._start(job, gpu)
            return
        self._waiting[job.life.arrival.tier] += 1
        if again:
            self._queues.put_back(job)
        else:
            self._queues.append(job)

    def _kill_for(self, job: Job) -> BaselineGpu | None:
        """The GPU that fits and whose job of a later tier has run shortest; that job waits again."""
        victims = [
            gpu.attempt
            for gpu in self._gpus
            if gpu.attempt and gpu.attempt.job.rank > 0 and gpu.fleet in job.lane.speeds
        ]
        if not victims:
            return None
        victim = max(victims, key=lambda attempt: attempt.taken_s)
        self._lose(victim)
        victim.gpu.resident = {}  # they go with the killed process
        victim.job.life.preemptions += 1
        self._ledger.preemptions += self._timeline.now < self._ledger.window_s
        self._place(victim.job, again=True)
        return victim.gpu

    def _free(self, gpu: BaselineGpu) -> None:
        """It takes the next job that fits, or is idle."""
        job = self._queues.take(self._plan.serves[gpu.pool], gpu.fleet)
        if job is None:
            self._idle.add(gpu)
            return
        self._waiting[job.life.arrival.tier] -= 1
        self._start(job, gpu)

    # -- attempts

    def _start(self, job: Job, gpu: BaselineGpu) -> None:
        attempt = Attempt(job, gpu, self._timeline.now)
        gpu.attempt = attempt
        if gpu.has(job.lane.model):
            self._denoise(attempt)
        else:
            gpu.make_room(job.lane.model)
            self._timeline.after(job.lane.model.load_s, lambda: self._loaded(attempt))

    def _loaded(self, attempt: Attempt) -> None:
        if attempt.gpu.attempt is attempt:
            model = attempt.job.lane.model
            attempt.gpu.resident[model.name] = model.vram_gb
            self._ledger.loaded(attempt.taken_s, self._timeline.now)
            self._denoise(attempt)

    def _denoise(self, attempt: Attempt) -> None:
        now, life = self._timeline.now, attempt.job.life
        attempt.began_s = now
        if life.started_at is None:
            life.started_at = now
        self._timeline.after(life.arrival.work_s / attempt.speed, lambda: self._end(attempt))

    def _end(self, attempt: Attempt) -> None:
        if attempt.gpu.attempt is attempt and attempt.began_s is not None:
            now, life = self._timeline.now, attempt.job.life
            self._ledger.worked(life, attempt.began_s, now, attempt.speed)
            self._ledger.end(life, now)
            attempt.gpu.attempt = None
            self._free(attempt.gpu)

    def _lose(self, attempt: Attempt) -> None:
        """It stops at once; nothing of its work is kept."""
        now = self._timeline.now
        attempt.gpu.attempt = None
        if attempt.began_s is None:
            self._ledger.loaded(attempt.taken_s, now)
            return
        self._ledger.spent("wasted", attempt.began_s, now)
        attempt.job.life.redone_s += (now - attempt.began_s) * attempt.speed

    # -- deaths

    def _die(self, death: Death) -> None:
        """Of any GPUs of the class that live."""
        fleets = self._scenario.fleets
        alive = [gpu for gpu in self._gpus if gpu.alive and fleets[gpu.fleet].gpu_class == death.gpu_class]
        for gpu in self._chance.sample(alive, min(death.count, len(alive))):
            self._idle.discard(gpu)
            gpu.alive, gpu.resident = False, {}
            if gpu.attempt:
                self._crash(gpu.attempt)
            if death.back_after_s:
                self._timeline.after(death.back_after_s, lambda g=gpu: self._come_back(g))  # type: ignore[misc]

    def _crash(self, attempt: Attempt) -> None:
        self._lose(attempt)
        attempt.job.life.crashes += 1
        self._timeline.after(self._scenario.costs.lease_s, lambda: self._place(attempt.job, again=True))

    def _come_back(self, gpu: BaselineGpu) -> None:
        gpu.alive = True
        self._free(gpu)

    # -- report

    def _sample(self) -> None:
        doing = Counter(_doing(gpu) for gpu in self._gpus)
        lanes = {model.name: 0 for model in self._scenario.models}
        for gpu in self._gpus:
            for model in gpu.resident:
                lanes[model] += 1
        self._samples.append(
            Sample(
                at_s=self._timeline.now,
                useful=doing["useful"],
                loading=doing["loading"],
                wasted=0,  # that work is lost shows only later
                idle=doing["idle"],
                waiting=dict(self._waiting),
                lanes=lanes,
            )
        )

    def _check_all_ended(self) -> None:
        left = len(self._jobs) - self._ledger.ended
        if left:
            raise SettingsError(
                f"The baseline {self._name!r} cannot end: {left} jobs wait for GPUs that have died and do "
                f"not come back. Let fewer GPUs die, or let them come back."
            )

    def _result(self) -> Result:
        return self._ledger.result(self._name, self._samples, gpus=len(self._gpus))


def _doing(gpu: BaselineGpu) -> str:
    if gpu.attempt is None:
        return "idle"
    return "loading" if gpu.attempt.began_s is None else "useful"
