"""Properties of routing: names read back, placements fit and are minimal, fleets serve what they can."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callsheet.errors import BadQueueName, NoGpuFits
from callsheet.records.gpus import Gpu
from callsheet.records.models import ModelSpec
from callsheet.routing.classes import KNOWN, covers
from callsheet.routing.fit import need_gib
from callsheet.routing.fleet import SHARED
from callsheet.routing.placement import fits, place
from callsheet.routing.queues import QueueName, parse_queue
from callsheet.routing.reroute import new_home, stranded
from callsheet.routing.subscription import subscribe
from tests.support.catalogs import built_in
from tests.support.fleet import gpu

WORD = st.from_regex(r"[a-z0-9]+(-[a-z0-9]+)*", fullmatch=True)
LANE = st.one_of(st.just(""), st.from_regex(r"[a-z0-9]+([.-][a-z0-9]+)*", fullmatch=True))
MODELS = list(built_in())
CLASSES = st.sets(st.sampled_from(sorted(KNOWN)))
GPUS = st.lists(
    st.builds(gpu, st.sampled_from(sorted(KNOWN)), vram_gib=st.sampled_from([0, 0, 0, 12, 40])), max_size=5
)
LANES = {"": SHARED}
NEED = st.floats(min_value=0.1, max_value=250)


@given(WORD, WORD, LANE)
def test_every_queue_name_reads_back(tier: str, gpu_class: str, lane: str) -> None:
    name = QueueName(tier, gpu_class, lane)
    assert parse_queue(str(name)) == name


@given(st.text())
def test_every_text_is_a_queue_name_or_refused(text: str) -> None:
    with suppress(BadQueueName):
        assert str(parse_queue(text)) == text


@given(st.text(), st.text(), st.text())
def test_parts_that_would_not_read_back_are_refused(tier: str, gpu_class: str, lane: str) -> None:
    try:
        name = QueueName(tier, gpu_class, lane)
    except BadQueueName:
        return
    assert parse_queue(str(name)) == name


@given(NEED, CLASSES, CLASSES)
def test_a_placement_fits_and_nothing_smaller_would(need: float, fleet: set[str], allowed: set[str]) -> None:
    permitted = allowed or set(KNOWN)
    if not any(fits(need, KNOWN[name]) for name in permitted):
        with pytest.raises(NoGpuFits, match=f"{need:.1f} GiB"):
            place(need, fleet=fleet, allowed=allowed)
        return
    chosen = KNOWN[place(need, fleet=fleet, allowed=allowed)]
    assert chosen.name in permitted
    assert fits(need, chosen)
    live = [KNOWN[name] for name in permitted & fleet if fits(need, KNOWN[name])]
    rivals = live or [KNOWN[name] for name in permitted if fits(need, KNOWN[name])]
    assert (chosen.vram_gib, chosen.price) == min((rival.vram_gib, rival.price) for rival in rivals)


@given(st.sampled_from(sorted(KNOWN)), st.sampled_from(sorted(KNOWN)), st.sampled_from(sorted(KNOWN)))
def test_covering_is_transitive_for_whole_cards(a: str, b: str, c: str) -> None:
    def whole(name: str) -> float:
        return KNOWN[name].vram_gib

    if covers(whole(a), a, b) and covers(KNOWN[b].usable_gib, b, c):
        assert covers(whole(a), a, c)
    assert covers(whole(a), a, a)
    assert covers(KNOWN[a].usable_gib, a, a)


@given(st.sampled_from(sorted(KNOWN)), st.integers(1, 200), CLASSES)
def test_a_worker_serves_exactly_what_its_gpu_covers(name: str, vram_gib: int, classes: set[str]) -> None:
    queues = subscribe(name, vram_gib, classes=classes)
    assert len(set(queues)) == len(queues)
    served = {parse_queue(queue).gpu_class for queue in queues}
    assert served == {c for c in classes | {name} if covers(vram_gib, name, c)}
    tiers = [parse_queue(queue).tier for queue in queues]
    assert tiers == sorted(tiers, reverse=True)  # all of pro before all of free


@given(NEED, GPUS)
def test_a_new_home_is_served_and_fits(need: float, fleet: list[Gpu]) -> None:
    home = new_home(need, tier="free", lane="", gpus=fleet, lanes=LANES)
    if home is None:
        assert not any(
            fits(need, known) and one.vram_gib >= int(known.usable_gib)
            for known in KNOWN.values()
            for one in fleet
            if KNOWN[one.gpu_class].usable_gib >= known.usable_gib
        )
    else:
        assert fits(need, KNOWN[home.gpu_class])
        assert not stranded([str(home)], fleet, LANES)


@given(NEED, GPUS.filter(bool))
def test_whatever_is_placed_on_a_served_class_fits_its_servers(need: float, fleet: list[Gpu]) -> None:
    """The promise behind queue names: each GPU that serves a class has the memory of its jobs."""
    name = place(min(need, 178), fleet=[one.gpu_class for one in fleet])
    for one in fleet:
        if f"pro.{name}" in one.queues:
            assert one.vram_gib + 1 > min(need, 178)  # vram_gib is rounded down


@given(st.sampled_from(MODELS), st.integers(1, 300), st.integers(1, 300))
def test_need_grows_with_the_film(model: ModelSpec, a: int, b: int) -> None:
    less, more = sorted((a, b))
    assert need_gib(model, model.width, model.height, less) <= need_gib(
        model, model.width, model.height, more
    )
