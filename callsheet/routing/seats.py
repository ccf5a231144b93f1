"""The GPUs as the policy sees them: what each holds, what it does, and when it is expected to be free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from callsheet.records.gpus import Gpu
from callsheet.records.jobs import Job
from callsheet.records.lanes import Desired
from callsheet.routing.estimates import Costs, Ends, LaneSpec, ends
from callsheet.routing.queues import lane_of

_IDLE = Ends(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Seat:
    """A GPU that takes jobs."""

    gpu: Gpu
    job: Job | None  # what runs there
    lane: str  # of that job
    frees_s: float  # expected seconds until it ends; what it loads now counted in
    yields_s: float  # expected seconds until it could have yielded, its checkpoint saved
    promised: bool  # a ticket in its direct queue: its next job is chosen
    loading: str  # a lane that it loads with no job, or was told to
    warm: frozenset[str]  # lanes whose weights it has; the shared lane "" counts as such
    leaves: frozenset[str] = frozenset()  # those of them that go for what it was told to load

    @property
    def stays(self) -> frozenset[str]:
        """Lanes that it will have once it has done what it was told."""
        return (self.warm | {self.loading} if self.loading else self.warm) - self.leaves

    @property
    def idle(self) -> bool:
        """Takes the next ticket at once."""
        return self.job is None and not self.promised and not self.loading


def take_seats(
    gpus: Iterable[Gpu],
    running: Mapping[str, Job],
    promised: Iterable[str],
    desired: Mapping[str, Desired],
    lanes: Mapping[str, LaneSpec],
    costs: Costs,
    now: float,
) -> list[Seat]:
    """The seats of these GPUs. ``running``: GPU name -> job; ``promised``: names with a chosen next job."""
    chosen = frozenset(promised)
    sets: dict[tuple[str, ...], frozenset[str]] = {}  # many GPUs hold the same weights
    found = []
    for gpu in gpus:
        warm = sets.get(gpu.resident)
        if warm is None:
            warm = sets[gpu.resident] = frozenset(lane for lane in ("", *gpu.resident) if lane in lanes)
        job, wish = running.get(gpu.name), desired.get(gpu.name)
        found.append(_seat(gpu, job, gpu.name in chosen, wish, warm, lanes, costs, now))
    return found


def _seat(
    gpu: Gpu,
    job: Job | None,
    promised: bool,
    wish: Desired | None,
    warm: frozenset[str],
    lanes: Mapping[str, LaneSpec],
    costs: Costs,
    now: float,
) -> Seat:
    load = wish.load if wish and wish.load not in warm else ""
    leaves = warm.difference(wish.keep) if wish and load else frozenset()
    if job is None:
        left = max(lanes[load].load_s - (now - wish.at), 0.0) if wish and load in lanes else 0.0
        return Seat(gpu, None, "", left, left, promised, load, warm, leaves)
    lane = lane_of(job.queue)
    expected = ends(job, lanes.get(lane), gpu.gpu_class, now)
    return Seat(
        gpu,
        job,
        lane,
        expected.frees_s,
        expected.yields_s + costs.save_s,
        promised,
        load,
        warm if lane in warm else warm | {lane},
        leaves,
    )
