"""A GPU and its worker: takes tickets, loads weights, runs steps, yields with a checkpoint, dies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Checkpoint, Job, Outcome, Ticket
from callsheet.records.states import State
from callsheet.routing.queues import direct_queue, lane_of
from callsheet.simulator.broker import Broker
from callsheet.simulator.ledger import Ledger
from callsheet.simulator.result import Life
from callsheet.simulator.scenario import Costs, Model
from callsheet.simulator.timeline import Timeline
from callsheet.store.memory import MemoryStore
from callsheet.store.protocol import ClaimRefused, Lease

FOREVER_S = 1e9  # leases and heartbeats of workers that live: nothing renews them, so that a run is fast
MEASURED = 2  # steps after which a worker tells how long its steps take


@dataclass(slots=True)
class World:
    """What all workers share."""

    timeline: Timeline
    store: MemoryStore
    broker: Broker
    ledger: Ledger
    costs: Costs
    models: dict[str, Model]
    lives: dict[str, Life]
    release: Callable[[str], object]  # refills a backlog's queues
    serial: int = 0

    def op(self) -> str:
        """A token."""
        self.serial += 1
        return f"op{self.serial}"


@dataclass(slots=True)
class _Run:
    """The attempt at work."""

    lease: Lease
    life: Life
    queue: str
    speed: float
    step_s: float
    from_step: int
    steps: int
    loading_s: float = 0.0
    began: float = 0.0  # of the first step of this attempt; 0 = not yet
    ordered: bool = False


class Worker:
    """One GPU. It looks at what is desired of it once a second, as the live one does."""

    def __init__(self, world: World, gpu: Gpu, phase_s: float) -> None:
        self._world, self._gpu, self._phase_s = world, gpu, phase_s
        self._run: _Run | None = None
        self._life = 0  # events of a life before are void
        self._loading = ""
        self._to_load = ""
        self._queues: tuple[str, ...] = ()
        self._direct = (direct_queue(gpu.name),)
        self.doing = "idle"
        self.alive = True
        self._tell()

    @property
    def name(self) -> str:
        """Of its GPU."""
        return self._gpu.name

    @property
    def gpu_class(self) -> str:
        """Of its GPU."""
        return self._gpu.gpu_class

    @property
    def resident(self) -> tuple[str, ...]:
        """Lanes whose weights it has, the least recently used first."""
        return self._gpu.resident

    # -- what it is told

    def take(self, ticket: Ticket) -> None:
        """A ticket from a queue at which it waits."""
        self.doing = "taking"
        self._later(self._world.costs.take_s, lambda: self._claim(ticket))

    def yield_soon(self, ticket_id: str) -> None:
        """The revoke signal: the attempt under this ticket yields at its next step."""
        run = self._run
        if run is not None and f"{run.lease.job.id}.{run.lease.job.ticket}" == ticket_id and not run.ordered:
            run.ordered = True
            if run.began:
                self._plan_yield(run)

    def reconcile(self) -> None:
        """What is desired may have changed: serve it from the next look on."""
        look = self._world.timeline.now - self._phase_s
        self._later(1.0 - look % 1.0, self._look)

    def die(self) -> None:
        """Without a word: its lease and its heartbeat run out."""
        world, run = self._world, self._run
        world.broker.leave(self)
        self._life += 1
        self.alive, self.doing, self._loading, self._to_load = False, "dead", "", ""
        world.timeline.after(world.costs.lease_s, lambda: world.store.drop_gpu(self.name))
        if run is not None:
            self._lose(run)
        self._run = None

    def come_back(self) -> None:
        """With nothing in its memory."""
        self.alive, self.doing = True, "idle"
        self._gpu = replace(self._gpu, resident=())
        self._tell()
        self.free()
        self._look()

    # -- what it does by itself

    def free(self) -> None:
        """Nothing to do: what was chosen for it, then weights to load, then its queues."""
        self._run, self.doing = None, "idle"
        ticket = self._world.broker.first(self._direct)
        if ticket is None and self._to_load:
            wish = self._world.store.desired_of(self.name)
            if wish is not None and wish.load == self._to_load and wish.load not in self.resident:
                self._preload(wish.load)
                return
        ticket = ticket or self._world.broker.first(self._queues)
        if ticket is not None:
            self.take(ticket)
        else:
            self._world.broker.wait(self, (*self._direct, *self._queues))

    def _look(self) -> None:
        wish = self._world.store.desired_of(self.name)
        queues, load = (wish.queues, wish.load) if wish else ((), "")
        if (queues, load) != (self._queues, self._to_load):
            self._queues, self._to_load = queues, load
            if self.doing == "idle":
                self._world.broker.leave(self)
                self.free()

    def _later(self, delay_s: float, act: Callable[[], object]) -> None:
        life = self._life
        self._world.timeline.after(delay_s, lambda: act() if life == self._life else None)

    def _tell(self) -> None:
        self._world.store.beat_gpu(self._gpu, ttl_s=FOREVER_S)

    # -- weights

    def _preload(self, lane: str) -> None:
        self.doing = "loading"
        self._begin_load(lane)
        self._later(self._world.models[lane].load_s, self._end_preload)

    def _begin_load(self, lane: str) -> None:
        load_s, now = self._world.models[lane].load_s, self._world.timeline.now
        self._world.ledger.loaded(now, now + load_s)
        self._loading = lane
        self._gpu = replace(self._gpu, resident=self._without(self._going(lane)))
        self._tell()

    def _end_load(self) -> None:
        self._gpu = replace(self._gpu, resident=(*self._without({self._loading}), self._loading))
        self._loading = ""
        self._tell()

    def _end_preload(self) -> None:
        self._end_load()
        self.free()

    def _end_load_for(self) -> None:
        self._end_load()
        self._restore()

    def _without(self, lanes: set[str]) -> tuple[str, ...]:
        return tuple(lane for lane in self.resident if lane not in lanes)

    def _going(self, lane: str) -> set[str]:
        """What leaves for it: lanes that are not to be kept first, the least recently used first."""
        models, going = self._world.models, set()
        wish = self._world.store.desired_of(self.name)
        keep = wish.keep if wish else ()
        room = self._gpu.vram_gib - sum(models[of].vram_gb for of in self.resident)
        for other in sorted(self.resident, key=lambda of: of in keep):
            if room >= models[lane].vram_gb:
                break
            going.add(other)
            room += models[other].vram_gb
        return going

    # -- an attempt

    def _claim(self, ticket: Ticket) -> None:
        store = self._world.store
        answer = store.claim(ticket, worker=self.name, token=self._world.op(), lease_s=FOREVER_S)
        if isinstance(answer, ClaimRefused):
            self.free()
            return
        self._world.release(answer.job.queue)
        self._run = self._begin(answer, ticket.queue)
        lane = lane_of(answer.job.queue)
        if lane in self.resident:
            self._gpu = replace(self._gpu, resident=(*self._without({lane}), lane))
            self._restore()
        else:
            self._load_for(lane)

    def _begin(self, lease: Lease, queue: str) -> _Run:
        job, life = lease.job, self._world.lives[lease.job.id]
        speed = self._world.models[lane_of(job.queue)].speed[self.gpu_class]
        steps = life.arrival.steps
        from_step = job.checkpoint.step if job.checkpoint else 0
        return _Run(lease, life, queue, speed, life.arrival.work_s / speed / steps, from_step, steps)

    def _load_for(self, lane: str) -> None:
        self.doing = "loading"
        run = self._running()
        run.loading_s = self._world.models[lane].load_s
        self._renew(run, run.from_step, "load")
        self._begin_load(lane)
        self._later(run.loading_s, self._end_load_for)

    def _restore(self) -> None:
        world, run = self._world, self._running()
        if not run.from_step:
            self._denoise()
            return
        self.doing = "wasted"
        now, cost_s = world.timeline.now, world.costs.restore_s
        world.ledger.spent("wasted", now, now + cost_s)
        fence = (run.lease.job.id, run.lease.attempt, run.lease.token)
        world.store.start_from(*fence, step=run.from_step, exact=True, reason="", op=world.op())
        self._later(cost_s, self._denoise)

    def _denoise(self) -> None:
        run, now = self._running(), self._world.timeline.now
        self.doing, run.began = "useful", now
        if run.life.started_at is None:
            run.life.started_at = now
        self._renew(run, run.from_step, "denoise")
        left = run.steps - run.from_step
        if run.ordered:
            self._plan_yield(run)
        if run.ordered and self.doing == "yielding":
            return
        if left > MEASURED:
            self._later(MEASURED * run.step_s, lambda: self._measured(run))
        self._later(left * run.step_s, lambda: self._finish(run))

    def _measured(self, run: _Run) -> None:
        if self._run is run:
            self._renew(run, run.from_step + MEASURED, "denoise", run.step_s)

    def _renew(self, run: _Run, step: int, phase: str, step_s: float = 0.0) -> None:
        job = run.lease.job
        self._world.store.renew(
            job.id,
            run.lease.attempt,
            run.lease.token,
            lease_s=FOREVER_S,
            step=step,
            steps=run.steps,
            phase=phase,
            step_s=step_s,
        )

    def _finish(self, run: _Run) -> None:
        if self._run is not run or self.doing == "yielding":
            return
        world, job, now = self._world, run.lease.job, self._world.timeline.now
        world.ledger.worked(run.life, run.began, now, run.speed)
        outcome = Outcome(state=State.SUCCEEDED, step=run.steps)
        world.store.finish(job.id, run.lease.attempt, run.lease.token, outcome, op=world.op())
        world.ledger.end(run.life, now)
        self._follow_up(job)

    def _plan_yield(self, run: _Run) -> None:
        """At the end of the step under way; a job in its last step ends instead."""
        done = int((self._world.timeline.now - run.began) / run.step_s) + 1
        if run.from_step + done < run.steps:
            self.doing = "yielding"
            at = run.began + done * run.step_s
            self._world.timeline.at(at, lambda: self._save(run, done))

    def _save(self, run: _Run, done: int) -> None:
        if self._run is not run:
            return
        world, now = self._world, self._world.timeline.now
        world.ledger.worked(run.life, run.began, now, run.speed)
        world.ledger.spent("wasted", now, now + world.costs.save_s)
        self._later(world.costs.save_s, lambda: self._hand_back(run, done))

    def _hand_back(self, run: _Run, done: int) -> None:
        world, job = self._world, run.lease.job
        fence = (job.id, run.lease.attempt, run.lease.token)
        kept = Checkpoint(run.from_step + done, "", "", 0)
        world.store.keep_checkpoint(*fence, kept, useful_s=0.0, op=world.op())
        world.store.hand_back(*fence, reason="yielded its GPU", op=world.op())
        run.life.preemptions += 1
        world.ledger.preemptions += world.timeline.now < world.ledger.window_s
        self._follow_up(job)

    def _follow_up(self, job: Job) -> None:
        self._world.release(job.queue)
        self.free()

    def _lose(self, run: _Run) -> None:
        """What was kept in the background counts, the rest is done again."""
        world, now = self._world, self._world.timeline.now
        done = int((now - run.began) / run.step_s) if run.began else 0
        every = max(int(world.costs.save_every_s / run.step_s), 1)
        kept = done - done % every
        if run.began:
            saved_at = run.began + kept * run.step_s
            world.ledger.worked(run.life, run.began, saved_at, run.speed)
            world.ledger.spent("wasted", saved_at, now)
            run.life.redone_s += (now - saved_at) * run.speed
        run.life.crashes += 1
        fence = (run.lease.job.id, run.lease.attempt, run.lease.token)
        if kept:
            step = Checkpoint(run.from_step + kept, "", "", 0)
            world.store.keep_checkpoint(*fence, step, useful_s=0.0, op=world.op())
        world.store.renew(
            *fence, lease_s=world.costs.lease_s, step=run.from_step + kept, steps=run.steps, phase="denoise"
        )

    def _running(self) -> _Run:
        assert self._run is not None
        return self._run
