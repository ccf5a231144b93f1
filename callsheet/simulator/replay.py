"""One run of callsheet's own policy: the live controllers over the in-memory store, on the virtual clock."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import NoReturn

from callsheet.beat import controllers, rebalancer, seats
from callsheet.beat.controllers import Hands
from callsheet.errors import NotAdmitted, SettingsError
from callsheet.records.gpus import Gpu
from callsheet.records.jobs import NewJob
from callsheet.records.requests import VideoRequest
from callsheet.records.states import State
from callsheet.routing.classes import KNOWN, smallest_first
from callsheet.routing.estimates import Costs, LaneSpec, rough_capacity
from callsheet.routing.fair import charge_s, delay_s
from callsheet.routing.fleet import FleetRules
from callsheet.routing.queues import queue_name
from callsheet.routing.tiers import TIERS, TierRule
from callsheet.settings import Settings
from callsheet.simulator.broker import Broker
from callsheet.simulator.capacity import runs_on
from callsheet.simulator.ledger import Ledger
from callsheet.simulator.result import Result, Sample
from callsheet.simulator.scenario import Arrival, Death, Model, Scenario
from callsheet.simulator.timeline import Timeline
from callsheet.simulator.worker import Worker, World
from callsheet.store.memory import MemoryStore
from callsheet.store.protocol import Store
from callsheet.tasks.admit import Admission

SAMPLES = 200
FAILED = 1000  # jobs that one tick of the reaper can fail, with room
KINDS = {"useful": "useful", "yielding": "useful", "loading": "loading", "wasted": "wasted"}


class Replay:
    """Everything of one run."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.timeline = Timeline()
        self.store = MemoryStore(self.timeline.store_time, retention_s=60.0)
        self.broker = Broker()
        self.ledger = Ledger(scenario)
        self.samples: list[Sample] = []
        self._random = random.Random(scenario.seed)  # noqa: S311  not a secret
        self._needs = {model.name: needed_class(model, scenario) for model in scenario.models}
        self._rules = fleet_rules(scenario)
        self._tiers = {rule.name: rule for rule in self._rules.tiers}
        gpus = {fleet.gpu_class: fleet.count for fleet in scenario.fleets}
        self._capacity = rough_capacity(gpus, self._rules.lanes.values())
        self._admission = Admission(self.store, self._rules, self.timeline.store_time)
        self._moved = 0
        self._world = World(
            self.timeline,
            self.store,
            self.broker,
            self.ledger,
            scenario.costs,
            {model.name: model for model in scenario.models},
            {},
            self._release,
        )
        self.workers = {worker.name: worker for worker in self._join()}
        self.hands = self._hands()

    def run(self) -> Result:
        """Until the last job has ended."""
        jobs = list(enumerate(self.scenario.arrivals))
        for index, arrival in jobs:
            self.timeline.at(arrival.at_s, lambda i=index, a=arrival: self._submit(i, a))  # type: ignore[misc]
        for worker in self.workers.values():
            worker.free()
        self._sample()
        self._tick()
        self._schedule_deaths()
        self.timeline.run(lambda: self.ledger.ended < len(jobs) or self.timeline.now < self.scenario.window_s)
        return self._result()

    # -- traffic

    def _submit(self, index: int, arrival: Arrival) -> None:
        job = self._new_job(index, arrival)
        try:
            self._admission.check(job)
        except NotAdmitted:
            self.ledger.refuse(self.ledger.lives[index])
            return
        self._world.lives[job.id] = self.ledger.lives[index]
        answer = self.store.submit(job, op=self._world.op(), release=True)
        for ticket in answer.tickets:
            self.broker.publish(ticket)
        if answer.urgent:
            self.timeline.after(self.scenario.costs.urgent_s, self._urgent)

    def _new_job(self, index: int, arrival: Arrival) -> NewJob:
        rule, need = self._tiers[arrival.tier], self._needs[arrival.model]
        noise = self._random.gauss(0.0, self.scenario.noise) if self.scenario.noise else 0.0
        work_s = arrival.work_s * math.exp(noise)
        request = VideoRequest(
            "", arrival.model, "", 832, 480, 81, 16, arrival.steps, 5.0, 0, arrival.tier, arrival.tenant
        )
        return NewJob(
            id=f"j{index}",
            request=request,
            body_hash="",
            need_gib=0.0,
            gpu_class=need,
            queue=queue_name(arrival.tier, need, arrival.model),
            work_s=work_s,
            charge_s=charge_s(work_s, self._capacity),
            delay_s=delay_s(work_s, rule.patience_s),
        )

    def _release(self, queue: str) -> None:
        for ticket in self.store.release(queue, op=self._world.op()):
            self.broker.publish(ticket)

    # -- controllers

    def _hands(self) -> Hands:
        return Hands(
            self.store,
            Settings(),
            depth=self.broker.depth,
            release=self._release_all,
            deliver=_deliver,
            publish=self.broker.publish,
            signal=lambda ticket_id, gpu: self.workers[gpu].yield_soon(ticket_id),
            objects=_no_objects,
            broker=lambda: None,
            fleet=self._rules,
            keeps_plans=False,
        )

    def _release_all(self, _store: Store, queue: str) -> int:
        self._release(queue)
        return 0

    def _tick(self) -> None:
        hands = self.hands
        if controllers.reap(hands):
            self._see_failed()
        seats.take_back(hands)
        controllers.hasten(hands)
        before = self.store.desired()
        rebalancer.rebalance_all(hands)
        for name, wish in self.store.desired().items():
            if before.get(name) != wish:
                self._moved += self.timeline.now < self.scenario.window_s
                self.workers[name].reconcile()
        controllers.release_all(hands)
        self.timeline.after(self.scenario.costs.tick_s, self._tick)

    def _see_failed(self) -> None:
        """Jobs that lost too many GPUs: the reaper ended them."""
        for job in self.store.list_jobs(state=State.FAILED, limit=FAILED).jobs:
            life = self._world.lives[job.id]
            if not life.failed:
                self.ledger.fail(life, self.timeline.now)

    def _urgent(self) -> None:
        rebalancer.seat_urgent(self.hands)

    # -- fleet

    def _join(self) -> Iterator[Worker]:
        count = sum(fleet.count for fleet in self.scenario.fleets)
        number = 0
        for fleet in self.scenario.fleets:
            for index in range(fleet.count):
                name = f"{fleet.gpu_class}-{index}@sim"
                gpu = Gpu(name, fleet.gpu_class, int(fleet.vram_gb), name, "sim", index)
                yield Worker(self._world, gpu, number / count)
                number += 1

    def _schedule_deaths(self) -> None:
        for death in self.scenario.deaths:
            self.timeline.at(death.at_s, lambda d=death: self._kill(d))  # type: ignore[misc]

    def _kill(self, death: Death) -> None:
        """Of any GPUs of the class that live; they come back with empty memory, if they do."""
        alive = [w for w in self.workers.values() if w.alive and w.gpu_class == death.gpu_class]
        for worker in self._random.sample(alive, min(death.count, len(alive))):
            worker.die()
            if death.back_after_s:
                self.timeline.after(death.back_after_s, worker.come_back)

    # -- report

    def _sample(self) -> None:
        doing = [worker.doing for worker in self.workers.values()]
        kinds = [KINDS.get(what, "idle") for what in doing]
        waiting = {tier.name: 0 for tier in self.scenario.tiers}
        lanes = {model.name: 0 for model in self.scenario.models}
        for one in self.store.lanes(0):
            waiting[one.queue.split(".")[0]] += one.jobs
        for worker in self.workers.values():
            for lane in worker.resident:
                lanes[lane] += 1
        counts = {kind: kinds.count(kind) for kind in ("useful", "loading", "wasted", "idle")}
        self.samples.append(Sample(at_s=self.timeline.now, **counts, waiting=waiting, lanes=lanes))
        if self.timeline.now < self.scenario.window_s:
            self.timeline.after(self.scenario.window_s / SAMPLES, self._sample)

    def _result(self) -> Result:
        return self.ledger.result("callsheet", self.samples, gpus=len(self.workers), moved_queues=self._moved)


def replay(scenario: Scenario) -> Result:
    """Run callsheet on a scenario."""
    return Replay(scenario).run()


def tier_rules(scenario: Scenario) -> tuple[TierRule, ...]:
    """The scenario's tiers as the policy knows them: the first preempts, the others yield."""
    known = {rule.name: rule for rule in TIERS}
    made = []
    for place, tier in enumerate(scenario.tiers):
        base = known.get(tier.name, TierRule(tier.name))
        made.append(
            TierRule(
                tier.name,
                share=tier.share,
                preempts=place == 0,
                yields=place > 0,
                max_preemptions=tier.max_preemptions,
                longest_wait_s=tier.longest_wait_s,
                patience_s=base.patience_s,
            )
        )
    return tuple(made)


def fleet_rules(scenario: Scenario) -> FleetRules:
    """What the policy is told of a scenario."""
    lanes = {}
    for model in scenario.models:
        speed = {f.gpu_class: model.speed[f.gpu_class] for f in scenario.fleets if runs_on(model, f)}
        lanes[model.name] = LaneSpec(model.name, speed, model.vram_gb, model.load_s)
    costs = Costs(save_s=scenario.costs.save_s, restore_s=scenario.costs.restore_s)
    return FleetRules(lanes=lanes, tiers=tier_rules(scenario), costs=costs)


def needed_class(model: Model, scenario: Scenario) -> str:
    """The smallest class of the fleet that runs a model. Raises SettingsError when there is none."""
    able = [fleet.gpu_class for fleet in scenario.fleets if runs_on(model, fleet)]
    if not able:
        raise SettingsError(f"model {model.name} runs on no GPU class of the fleet")
    return smallest_first(name for name in able if name in KNOWN)[0].name


def _deliver(store: Store, job_id: str) -> bool:
    return store.mark_delivered(job_id, names=[job_id], token=job_id)


def _no_objects() -> NoReturn:
    raise NotImplementedError("a simulation stores nothing")
