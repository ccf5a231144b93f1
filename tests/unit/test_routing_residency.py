"""Which weights stay, and which go."""

from __future__ import annotations

from tests.support.snapshots import lane, lanes, replicas, seat

SPECS = lanes(
    lane("wan", vram_gb=40.0, load_s=20.0),
    lane("ltx", vram_gb=30.0, load_s=10.0),
    lane("cog", vram_gb=10.0, load_s=5.0),
    lane("new", vram_gb=45.0),
    lane("huge", vram_gb=81.0),
)
FULL = seat(warm=["wan", "ltx", "cog"])  # 80 of 80 GB


def test_what_the_seats_have_and_load_is_counted() -> None:
    counted = replicas([seat(warm=["wan"]), seat("h100", 1, loading="wan")], SPECS)
    assert counted.of_lane["wan"] == 2
    assert counted.of_class["a100", "wan"] == counted.of_class["h100", "wan"] == 1


def test_a_lane_should_have_its_targets_or_its_peak_whichever_is_more() -> None:
    counted = replicas([], SPECS, {"a100": {"wan": 1.0}, "h100": {"wan": 1.5}}, {"wan": 2.0, "ltx": 3.0})
    assert (counted.wanted("wan"), counted.wanted("ltx"), counted.lack("cog")) == (2.5, 3.0, 0.0)


def test_nothing_goes_when_there_is_room() -> None:
    one = seat(warm=["ltx"])
    assert replicas([one], SPECS).evicted(one, "new") == (0.0, ())


def test_what_never_fits_is_told() -> None:
    assert replicas([FULL], SPECS).evicted(FULL, "huge") is None
    part = seat(vram_gib=40)
    assert replicas([part], SPECS).evicted(part, "new") is None


def test_what_is_least_needed_goes_first() -> None:
    counted = replicas([FULL], SPECS, {"a100": {"wan": 0.0, "ltx": 1.0, "cog": 1.0}})
    assert counted.evicted(FULL, "new") == (5.0, ("wan", "cog"))


def test_the_most_in_excess_goes_first() -> None:
    fleet = [FULL, seat(index=1, warm=["ltx"]), seat(index=2, warm=["ltx"])]
    found = replicas(fleet, SPECS).evicted(FULL, "new")
    assert found == (0.0, ("ltx", "cog", "wan"))


def test_no_more_goes_than_has_to() -> None:
    small = lanes(*SPECS.values(), lane("small", vram_gb=10.0))
    counted = replicas([FULL], small, {"a100": {"wan": 1.0, "ltx": 1.0}})
    assert counted.evicted(FULL, "small") == (0.0, ("cog",))


def test_a_replica_that_is_lacked_costs_what_loading_it_again_costs() -> None:
    one = seat(warm=["wan", "ltx"])
    counted = replicas([one], SPECS, {"a100": {"wan": 1.0, "ltx": 0.5}})
    assert counted.evicted(one, "new") == (5.0 + 20.0, ("ltx", "wan"))


def test_the_last_replica_of_a_class_is_lacked_there_though_another_class_has_more() -> None:
    fleet = [seat(warm=["wan"]), seat("h100", 1, warm=["wan"]), seat("h100", 2, warm=["wan"])]
    counted = replicas(fleet, SPECS, {"a100": {"wan": 1.0}})
    assert counted.loss("a100", "wan") == 1.0
    assert counted.loss("h100", "wan") == 0.0


def test_decisions_change_the_counts() -> None:
    counted = replicas([FULL], SPECS, {"a100": {"wan": 1.0}})
    counted.add("a100", "wan")
    assert counted.loss("a100", "wan") == 0.0
    counted.add("a100", "wan", -1)
    assert counted.loss("a100", "wan") == 1.0


def test_weights_that_no_lane_describes_are_left_alone() -> None:
    one = seat(warm=["stranger", "wan"])
    found = replicas([one], SPECS).evicted(one, "new")
    assert found == (0.0, ("wan",))
