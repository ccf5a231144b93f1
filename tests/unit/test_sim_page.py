"""The page of a simulation."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from callsheet.simulator.axes import Axis, linear, log
from callsheet.simulator.page import page
from callsheet.simulator.plots import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Band, Line, lines, stack
from callsheet.simulator.runs import outcome
from callsheet.simulator.scenario import Arrival, Fleet, Model, Scenario, Spike, TierSpec

VOID = {"meta", "line", "rect"}


class Reader(HTMLParser):
    """Checks that tags are closed in order, and keeps what is there."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def scenario(models: int = 2) -> Scenario:
    jobs = tuple(
        Arrival(float(at), f"t{at % 3}", "free" if at % 2 else "pro", f"m{at % models}", 4.0, 10)
        for at in range(24)
    )
    made = tuple(Model(f"m{number}", 20.0, {"a100": 1.0}, 1.0) for number in range(models))
    tiers = (TierSpec("pro", 0.9), TierSpec("free", 0.05))
    spikes = (Spike(2.0, 5.0, 5.0, "free"),)
    return Scenario("a <b> & c", (Fleet("a100", 2, 80.0),), made, tiers, jobs, 30.0, spikes=spikes)


@pytest.fixture(scope="module")
def text() -> str:
    told = scenario()
    return page(told, [outcome(policy, told) for policy in ("fifo", "restart", "pro-only")])


def test_it_is_one_well_formed_file(text: str) -> None:
    told = Reader(text)
    assert told.tags.count("svg") > 12
    assert not {"script", "img", "link", "iframe"} & set(told.tags)
    assert not {"src", "href"} & {name for name, _ in told.attributes}
    assert "http" not in text
    assert "url(" not in text
    assert "@import" not in text


def test_foreign_text_is_escaped(text: str) -> None:
    assert "a &lt;b&gt; &amp; c" in text
    assert "<b>" not in text


def test_it_has_every_section_and_policy(text: str) -> None:
    texts = Reader(text).texts
    for title in ("Policies", "Waits", "Use of the GPUs", "Queue depth", "Subscriptions", "Tenants"):
        assert title in texts
    for word in ("fifo", "restart", "pro-only", "pro", "free", "m0", "m1", "useful", "idle", "fluid"):
        assert word in texts
    assert any("2 times the arrivals of tier free from 5 s for 5 s" in each for each in texts)


def test_axes_name_their_units(text: str) -> None:
    labels = re.findall(r'<text class="label"[^>]*>([^<]*)</text>', text)
    assert {"Time, s", "GPUs, %", "Jobs, %", "Waiting jobs", "GPUs", "Tenants, %"} <= set(labels)
    assert any(label.startswith("Wait, s (log") for label in labels)


def test_it_is_for_phones_and_for_dark_rooms(text: str) -> None:
    assert 'name="viewport"' in text
    assert "@media(prefers-color-scheme:dark)" in text
    assert "tabular-nums" in text


def test_every_class_of_a_line_or_band_has_a_colour(text: str) -> None:
    style = text[: text.index("</style>")]
    used = {name for found in re.findall(r'class="(?:line|band) ([^"]*)"', text) for name in found.split()}
    assert used
    assert [name for name in used if f".{name}{{" not in style] == []


def test_no_number_is_missing(text: str) -> None:
    assert re.search(r"\b(nan|inf|None)\b", text) is None


def test_two_pages_of_a_run_are_equal() -> None:
    told = scenario()
    outcomes = [outcome("fifo", told)]
    assert page(told, outcomes) == page(told, outcomes)


def test_models_beyond_the_colours_are_one_band() -> None:
    told = scenario(models=12)
    texts = Reader(page(told, [outcome("fifo", told)])).texts
    assert "5 others" in texts


def test_a_run_without_samples_has_a_page() -> None:
    told = scenario()
    bare = outcome("fifo", told)
    bare.result.samples.clear()
    Reader(page(replace(told, spikes=()), [bare]))


def test_linear_axes_end_with_a_label() -> None:
    axis = linear("jobs", 87.0)
    assert (axis.low, axis.high) == (0.0, 100.0)
    assert [text for _, text in axis.ticks()] == ["0", "20", "40", "60", "80", "100"]
    assert [text for _, text in Axis("t", 0.0, 3400.0).ticks()] == ["0", "1,000", "2,000", "3,000"]
    assert [text for _, text in linear("many", 40_000.0).ticks()] == ["0", "10k", "20k", "30k", "40k"]
    assert linear("none", 0.0).high == 1.0
    assert (axis.place(-5.0), axis.place(50.0), axis.place(500.0)) == (0.0, 0.5, 1.0)


def test_logarithmic_axes_have_powers_of_ten() -> None:
    axis = log("wait", 0.01, 250.0)
    assert [text for _, text in axis.ticks()] == ["0.01", "0.1", "1", "10", "100", "1,000"]
    assert (axis.place(0.0), axis.place(0.01)) == (0.0, 0.0)
    assert axis.place(1.0) == pytest.approx(0.4)
    assert log("short", 0.01, 0.0).high == pytest.approx(0.1)


def test_lines_lie_between_the_margins() -> None:
    x, y = Axis("x", 0.0, 10.0), Axis("y", 0.0, 1.0)
    svg = lines(
        "two", x, y, [Line("a", [(0.0, 0.0), (10.0, 1.0)], "c0"), Line("none", [], "c1")], [(2.0, 4.0)]
    )
    low, high = f"{LEFT:.1f} {HEIGHT - BOTTOM:.1f}", f"{WIDTH - RIGHT:.1f} {TOP:.1f}"
    assert f'd="M{low}L{high}"' in svg
    assert svg.count("<path") == 1
    assert svg.count('class="shade"') == 1


def test_bands_stand_on_each_other() -> None:
    x, y = Axis("x", 0.0, 1.0), Axis("y", 0.0, 4.0)
    svg = stack("two", x, y, [0.0, 1.0], [Band("a", [1.0, 1.0], "c0"), Band("b", [3.0, 1.0], "c1")])
    first, second = re.findall(r'd="M([^"]*)Z"', svg)
    assert second.split("L")[2:] == first.split("L")[1::-1]  # the lower edge of one is the upper of the other
    assert second.startswith(f"{LEFT:.1f} {TOP:.1f}")
