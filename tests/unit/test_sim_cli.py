"""``callsheet simulate``, called as a user does."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from callsheet.cli.run import main
from callsheet.cli.simulate import POLICIES, simulate
from callsheet.simulator import runs
from callsheet.simulator.measures import Measures
from callsheet.simulator.reading import read_scenario

SCENARIO = """
window_s = 60
[[fleet]]
class = "a100"
count = 4
vram_gb = 80
[tiers.pro]
share = 0.9
[tiers.free]
share = 0.05
[models]
pattern = "SM"
fold = 2
[sizes.S]
vram_gb = 20
speed = {a100 = 1.0}
[sizes.M]
vram_gb = 38
speed = {a100 = 1.0}
[generate]
span_s = 70
models = 5
tenants = 5
median_s = 4
least_s = 1
most_s = 12
[[generate.stream]]
tier = "pro"
jobs = 20
cv = 3
peak = 4
[[generate.stream]]
tier = "free"
jobs = 30
cv = 1
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    return path


def call(*args: object) -> int:
    return main(["simulate", *map(str, args)])


def test_json_has_the_keys_that_goals_are_told_in(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(scenario, "--spike", "3x@20s+10s:free", "-o", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["scenario"]["name"] == "small"
    assert list(told["policies"]) == ["callsheet"]
    one = told["policies"]["callsheet"]
    assert {"goodput", "useful_share", "loading_share", "wasted_share", "loads", "preemptions"} <= set(one)
    assert {"drain_s", "jain", "finished", "refused"} <= set(one)
    for tier in ("pro", "free"):
        assert set(one["wait_s"][tier]) == {"p50", "p95", "p99", "max"}
        assert {"p50", "p95", "max"} <= set(one["turnaround_s"][tier])
        assert {"p95", "max"} <= set(one["fluid_wait_s"][tier])
    assert one["drain_s"] is not None


def test_several_policies_are_rows_of_tables(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(scenario, "--policy", "fifo", "--policy", "restart", "--load", "0.5", "--seed", "4") == 0
    said = capsys.readouterr()
    policies, waits = said.out.split("\n\n")
    assert [line.split()[0] for line in policies.splitlines()] == ["policy", "fifo", "restart"]
    assert [line.split()[:2] for line in waits.splitlines()[1:]] == [
        ["fifo", "pro"],
        ["fifo", "free"],
        ["restart", "pro"],
        ["restart", "free"],
    ]
    assert "fifo: " in said.err


def test_all_means_all(scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(scenario, "--policy", "all", "--html", tmp_path / "page.html", "-o", "json") == 0
    assert tuple(json.loads(capsys.readouterr().out)["policies"]) == runs.POLICIES
    assert "pro-only" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["trace.csv", "trace.csv.gz"])
def test_the_generated_trace_makes_the_same_scenario(
    scenario: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(scenario, "--generate", tmp_path / name, "--seed", "5", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == {"path": str(tmp_path / name), "jobs": 50}
    again = read_scenario(scenario, seed=5, trace=tmp_path / name, load=0.7)
    assert again == read_scenario(scenario, seed=5, load=0.7)


def test_a_trace_goes_before_what_is_generated(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("arrival_s,tenant,tier,model,service_s,steps\n1,t,pro,m,4,9\n2,t,free,m,4,9\n")
    assert call(scenario, "--policy", "fifo", "--trace", trace, "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["policies"]["fifo"]["jobs"] == 2


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("none.toml",), "scenario none.toml does not exist"),
        (("small.toml", "--trace", "none.csv"), "trace none.csv does not exist"),
        (("small.toml", "--spike", "much"), "spike 'much' is not understood"),
        (("small.toml", "--spike", "2x@5s+5s:vip"), "spike 1 is of tier vip"),
        (("small.toml", "--policy", "lifo"), "'lifo' is not one of"),
        (("small.toml", "--load", "-1"), "-1"),
        (("small.toml", "--html", "none/page.html"), "there is no folder none"),
        (("small.toml", "--generate", "a.csv", "--load", "2"), "leave out --load"),
        (("small.toml", "--generate", "none/a.csv"), "trace none/a.csv cannot be written"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_run(
    scenario: Path,
    args: tuple[str, ...],
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(scenario.parent)
    assert call(*args) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert "jobs on" not in said.err
    assert said.out == ""


def test_the_choices_are_those_that_can_be_run() -> None:
    assert set(POLICIES) == {*runs.POLICIES, runs.ALL}


def test_help_loads_no_simulator() -> None:
    code = (
        "import sys; from callsheet.cli.run import main; main(['simulate', '-h']); "
        "sys.exit(any(name.startswith(('callsheet.simulator', 'scipy', 'numpy')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_every_measure_and_option_is_documented() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    options = [option for param in simulate.params for option in param.opts if option.startswith("--")]
    keys = [field.name for field in fields(Measures)]
    names = {*options, *keys, *POLICIES} - {"policy", "--output"}
    assert [name for name in sorted(names) if f"`{name}" not in docs] == []
