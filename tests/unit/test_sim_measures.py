"""What a simulation tells."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from callsheet.errors import SettingsError
from callsheet.simulator.drain import drain_s
from callsheet.simulator.fairness import jain, parts_of
from callsheet.simulator.measures import Measures, measure
from callsheet.simulator.report import POLICY_COLUMNS, WAIT_COLUMNS, document, policy_rows, seconds, wait_rows
from callsheet.simulator.result import Life, Result
from callsheet.simulator.runs import POLICIES, named, outcome, run, scenario_for
from callsheet.simulator.scenario import Arrival, Fleet, Model, Scenario, Spike, TierSpec
from callsheet.simulator.spread import Spread, spread

FLEET = (Fleet("a100", 2, 80.0),)
MODELS = (Model("m", 20.0, {"a100": 1.0}, 1.0),)
TIERS = (TierSpec("pro", 0.9), TierSpec("free", 0.05))


def arrival(at_s: float, tenant: str = "t", tier: str = "pro", work_s: float = 10.0) -> Arrival:
    return Arrival(at_s, tenant, tier, "m", work_s, 10)


def life(
    at_s: float,
    start_s: float | None,
    end_s: float | None,
    done_s: float = 0.0,
    tenant: str = "t",
    tier: str = "pro",
) -> Life:
    return Life(arrival(at_s, tenant, tier), start_s, end_s, done_s)


def scenario(*arrivals: Arrival, window_s: float = 100.0, spikes: tuple[Spike, ...] = ()) -> Scenario:
    return Scenario("s", FLEET, MODELS, TIERS, arrivals, window_s, spikes=spikes)


def measured(lives: list[Life], **gpu_s: float) -> Measures:
    told = scenario(*(each.arrival for each in lives))
    return measure(told, Result("p", lives, gpu_s, loads=3, preemptions=2, moved_queues=1))


def test_percentiles_lie_between_neighbours() -> None:
    told = spread([4.0, 1.0, 2.0, 3.0])
    assert (told.p50, told.max) == (2.5, 4.0)
    assert told.p95 == pytest.approx(3.85)
    assert told.p99 == pytest.approx(3.97)
    assert spread([7.0]) == Spread(7.0, 7.0, 7.0, 7.0)
    assert spread([]) == Spread(None, None, None, None)


def test_goodput_is_over_the_work_that_was_offered_when_that_is_less() -> None:
    told = measured([life(0, 1, 11, 10.0), life(5, 6, None, 4.0)], useful=14, loading=2, wasted=4, idle=180)
    assert told.capacity == pytest.approx(2.0)
    assert (told.offered_s, told.done_s) == (20.0, 14.0)
    assert told.goodput == pytest.approx(14 / 20)
    shares = (told.useful_share, told.loading_share, told.wasted_share, told.idle_share)
    assert shares == pytest.approx((0.07, 0.01, 0.02, 0.9))
    assert (told.loads, told.preemptions, told.moved_queues) == (3, 2, 1)


def test_work_that_comes_at_the_end_is_beyond_any_policy() -> None:
    """Two GPUs are idle for half of the window, then more comes than they can do."""
    late = [Life(replace(arrival, at_s=50.0)) for arrival in (Arrival(0.0, "t", "pro", "m", 200.0, 10),) * 2]
    told = measured(late)
    assert told.fluid_goodput == pytest.approx(0.5)


def test_goodput_is_over_what_the_fleet_can_do_when_that_is_less() -> None:
    lives = [life(at, at, at + 10, 9.0) for at in range(40)]
    assert measured(lives).goodput == pytest.approx(360 / 200)


def test_waits_by_tier() -> None:
    lives = [life(0, 2, 12), life(1, 5, 15), life(2, None, None), life(3, 9, 30, tier="free")]
    told = measured(lives)
    assert (told.wait_s["pro"].p50, told.wait_s["pro"].max) == (3.0, 4.0)
    assert (told.turnaround_s["pro"].p50, told.turnaround_s["free"].max) == (13.0, 27.0)
    assert told.fluid_wait_s["pro"].max == pytest.approx(8.0)  # 20 s before it, 4 s of them are done
    assert (told.jobs, told.finished, told.refused) == (4, 3, 0)


def test_refused_jobs_are_offered_and_never_wait() -> None:
    refused = life(3, None, None)
    refused.refused = True
    told = measured([life(0, 0, 10, 10.0), refused])
    assert (told.goodput, told.refused, told.finished, told.wait_s["pro"].max) == (0.5, 1, 1, 0.0)


def test_no_spike_no_drain() -> None:
    told = measured([life(0, 0, 10)])
    assert (told.drain_s, told.fluid_drain_s) == (None, None)


def test_a_spike_drains_when_no_more_wait_than_before_it() -> None:
    spike = Spike(5.0, 100.0, 20.0)
    before = [life(30, 39, 50), life(50, 95, 99), life(60, 61, 70)]  # two wait at 60 s, one at 30 s
    during = [life(105 + at, 130 + 5 * at, 200) for at in range(5)]  # starts at 130, 135, 140, 145, 150
    assert drain_s(spike, before + during, 1000.0) == 20.0
    assert drain_s(spike, [*before, *during[:2]], 1000.0) == 0.0
    assert drain_s(spike, during, 1000.0) == 30.0
    assert drain_s(spike, [*during, life(106, None, None)], 1000.0) is None
    refused = life(106, None, None)
    refused.refused = True
    assert drain_s(spike, [*during, refused], 1000.0) == 30.0


def test_a_spike_ends_with_the_window() -> None:
    lives = [life(95 + at, 101 + at, 200) for at in range(3)]
    assert drain_s(Spike(5.0, 90.0, 500.0), lives, 100.0) == 3.0


def test_the_worst_drain_counts() -> None:
    spikes = (Spike(2.0, 10.0, 10.0), Spike(2.0, 110.0, 10.0))
    lives = [life(15, 22, 30), life(115, 129, 140)]
    traffic = scenario(*(each.arrival for each in lives), window_s=200.0, spikes=spikes)
    told = measure(traffic, Result("p", lives, {}))
    assert told.drain_s == 9.0
    assert told.fluid_drain_s is not None


def test_jain() -> None:
    assert jain([3.0, 3.0, 3.0]) == pytest.approx(1.0)
    assert jain([1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert jain([1.0]) is None
    assert jain([0.0, 0.0]) is None


def test_only_tenants_that_always_have_work_count() -> None:
    lives = [
        life(0, 0, 50, 50.0, tenant="a"),
        life(40, 50, 120, 50.0, tenant="a"),
        life(9, 20, None, 40.0, tenant="b"),  # the span begins at 10 s
        life(11, 20, None, 40.0, tenant="late"),
        life(0, 0, 50, 50.0, tenant="gap"),
        life(51, 60, None, 40.0, tenant="gap"),
        life(0, 0, 99, 90.0, tenant="early"),
        life(0, 0, None, 90.0, tenant="a", tier="free"),
    ]
    parts = parts_of(lives, 100.0)
    assert parts["pro"] == pytest.approx({"a": 40.0 + 50.0, "b": 40.0})
    assert parts["free"] == pytest.approx({"a": 81.0})
    told = measured(lives)
    assert told.jain_tenants == {"pro": 2, "free": 1}
    assert told.jain_by_tier["free"] is None
    assert told.jain == told.jain_by_tier["pro"] == pytest.approx(130**2 / (2 * (90**2 + 40**2)))


def test_a_tenant_that_gets_nothing_counts() -> None:
    lives = [life(0, 0, None, 50.0, tenant="a"), life(0, None, None, tenant="b")]
    assert measured(lives).jain == pytest.approx(0.5)


def busy() -> Scenario:
    jobs = [arrival(at, f"t{at % 3}", "free" if at % 2 else "pro", 4.0) for at in range(12)]
    return scenario(*jobs, window_s=20.0, spikes=(Spike(2.0, 2.0, 2.0, "free"),))


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_runs_and_is_told_the_same_way(policy: str) -> None:
    told = outcome(policy, busy()).measures
    shares = (told.useful_share, told.loading_share, told.wasted_share, told.idle_share)
    assert told.policy == policy
    assert sum(shares) == pytest.approx(1.0)
    assert told.finished == told.jobs == (6 if policy == "pro-only" else 12)
    assert 0.0 < told.goodput <= 1.0 + 1e-9
    assert told.took_s > 0.0


def test_pro_only_has_the_traffic_of_the_first_tier() -> None:
    alone = scenario_for("pro-only", busy())
    assert {each.tier for each in alone.arrivals} == {"pro"}
    assert alone.spikes == ()
    assert scenario_for("fifo", busy()) == busy()
    with pytest.raises(SettingsError, match="no job of tier pro: leave the policy pro-only out"):
        scenario_for("pro-only", scenario(arrival(0, tier="free")))


def test_policies_by_name() -> None:
    assert named(["fifo", "callsheet", "fifo"]) == ("fifo", "callsheet")
    assert named(["fifo", "all"]) == ("fifo", *(policy for policy in POLICIES if policy != "fifo"))
    with pytest.raises(SettingsError, match="no policy 'lifo': choose one of callsheet, pro-only"):
        run("lifo", busy())


def test_the_document_has_every_measure() -> None:
    told = [outcome(policy, busy()).measures for policy in ("fifo", "static")]
    answer = document(busy(), told)
    assert list(answer["policies"]) == ["fifo", "static"]
    wanted = {field.name for field in fields(Measures)} - {"policy"}
    assert set(answer["policies"]["fifo"]) == wanted
    assert set(answer["policies"]["fifo"]["wait_s"]["pro"]) == {"p50", "p95", "p99", "max"}
    assert (answer["scenario"]["gpus"], answer["scenario"]["jobs"]) == (2, 12)


def test_rows_fit_their_columns() -> None:
    told = outcome("pro-only", busy()).measures
    (policy,), (wait,) = policy_rows([told]), wait_rows([told])  # free has no job and no row
    assert (len(policy), len(wait)) == (len(POLICY_COLUMNS), len(WAIT_COLUMNS))
    assert (policy[0], wait[:2]) == ("pro-only", ("pro-only", "pro"))
    assert policy_rows([replace(told, jain=0.98765, drain_s=None)])[0][9:11] == ("0.988", "-")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0.00"),
        (0.423, "0.42"),
        (9.996, "10.0"),
        (12.34, "12.3"),
        (99.96, "100"),
        (1234.5, "1,234"),
    ],
)
def test_seconds_as_exactly_as_they_matter(value: float | None, text: str) -> None:
    assert seconds(value) == text
