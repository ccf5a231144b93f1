"""What holds in every simulated run, whatever comes and whatever dies.

Live controllers, policy and store run here over a virtual clock: what holds here holds for their logic live.
"""

from __future__ import annotations

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from callsheet.settings import Settings
from callsheet.simulator.replay import replay
from callsheet.simulator.result import Result
from callsheet.simulator.scenario import Arrival, Costs, Death, Fleet, Model, Scenario, TierSpec

MODELS = (
    Model("s", 20.0, {"a100": 1.0, "l40s": 0.6}, 3.0),
    Model("m", 38.0, {"a100": 1.0, "l40s": 0.5}, 6.0),
    Model("l", 60.0, {"a100": 1.0}, 9.0),
)
CAP = 3
TIERS = (TierSpec("pro", 0.9), TierSpec("free", 0.05, longest_wait_s=3600.0, max_preemptions=CAP))
WINDOW_S = 60.0
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)  # a run takes a second: shrinking would take minutes
FEW = settings(max_examples=6, deadline=None, phases=QUICK, derandomize=True)

arrivals = st.builds(
    Arrival,
    at_s=st.floats(0.0, 50.0),
    tenant=st.sampled_from(["ann", "ben", "cid"]),
    tier=st.sampled_from(["pro", "free"]),
    model=st.sampled_from(["s", "m", "l"]),
    work_s=st.floats(1.0, 40.0),
    steps=st.integers(1, 20),
)
deaths = st.builds(
    Death,
    at_s=st.floats(0.0, 80.0),
    gpu_class=st.sampled_from(["a100", "l40s"]),
    count=st.integers(1, 3),
    back_after_s=st.floats(1.0, 30.0),
)


def scenario(jobs: list[Arrival], a100: int, l40s: int, dying: list[Death], noise: float = 0.0) -> Scenario:
    fleets = [Fleet("a100", a100, 80.0), *([Fleet("l40s", l40s, 48.0)] if l40s else [])]
    ordered = tuple(sorted(jobs, key=lambda job: job.at_s))
    known = {fleet.gpu_class for fleet in fleets}
    return Scenario(
        "random",
        tuple(fleets),
        MODELS,
        TIERS,
        ordered,
        WINDOW_S,
        deaths=tuple(death for death in dying if death.gpu_class in known),
        noise=noise,
    )


def check(result: Result, gpus: int) -> None:
    """Every job ended once, no GPU-second is counted twice or lost, caps are kept."""
    assert all(life.ended_at is not None for life in result.lives)
    assert abs(sum(result.gpu_s.values()) - gpus * WINDOW_S) < 1e-6
    assert min(result.gpu_s.values()) > -1e-9
    for life in result.lives:
        assert not life.failed or life.crashes >= Settings().max_crashes
        if life.started_at is None:
            assert life.failed
            continue
        assert life.arrival.at_s <= life.started_at
        assert life.preemptions <= (CAP if life.arrival.tier == "free" else 0)
        assert life.redone_s == 0.0 or life.crashes


@FEW
@given(st.lists(arrivals, max_size=30), st.integers(1, 4), st.integers(0, 3), st.floats(0.0, 0.5))
def test_every_admitted_job_ends(jobs: list[Arrival], a100: int, l40s: int, noise: float) -> None:
    check(replay(scenario(jobs, a100, l40s, [], noise)), a100 + l40s)


@FEW
@given(st.lists(arrivals, max_size=20), st.integers(1, 3), st.integers(0, 3), st.lists(deaths, max_size=4))
def test_every_admitted_job_ends_though_workers_die(
    jobs: list[Arrival], a100: int, l40s: int, dying: list[Death]
) -> None:
    check(replay(scenario(jobs, a100, l40s, dying)), a100 + l40s)


@FEW
@given(st.integers(2, 8), st.integers(1, 8), st.floats(40.0, 50.0), st.integers(10, 60))
def test_lent_capacity_comes_back_within_a_tick_and_a_step(
    gpus: int, pros: int, at_s: float, steps: int
) -> None:
    """Free jobs hold the whole fleet, weights in place; pro jobs within their share find GPUs at once."""
    free = [Arrival(0.0, f"free-{n}", "free", "s", 100.0, steps) for n in range(2 * gpus)]
    pro = [Arrival(at_s, f"pro-{n}", "pro", "s", 10.0, 10) for n in range(min(pros, int(0.9 * gpus)))]
    result = replay(scenario([*free, *pro], gpus, 0, []))
    costs, step_s = Costs(), 100.0 / steps
    bound_s = costs.tick_s + step_s + costs.save_s + costs.take_s + 0.01
    waits = [
        life.started_at - at_s for life in result.lives if life.arrival.tier == "pro" and life.started_at
    ]
    assert len(waits) == len(pro)
    assert max(waits, default=0.0) <= bound_s


@FEW
@given(st.integers(3, 6), st.integers(20, 40))
def test_free_keeps_its_guaranteed_share_however_much_pro_there_is(gpus: int, share: int) -> None:
    """Both tiers always have work: free GPUs do no less than its share, but for the time of its moves."""
    rules = (TierSpec("pro", 1.0 - share / 100), TierSpec("free", share / 100))
    jobs = [
        Arrival(0.0, f"{tier}-{n}", tier, "s", 10.0, 10) for tier in ("pro", "free") for n in range(40 * gpus)
    ]
    whole = scenario(jobs, gpus, 0, [])
    result = replay(Scenario("shares", whole.fleets, MODELS, rules, whole.arrivals, WINDOW_S * 2))
    done = sum(life.done_s for life in result.lives if life.arrival.tier == "free")
    assert done >= int(share / 100 * gpus) * (WINDOW_S * 2 - 30.0)
