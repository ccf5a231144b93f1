"""The unit files run what ``callsheet up`` runs, come back when they die, and get the time that they need."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from callsheet.cli.root import root
from callsheet.processes import Child
from callsheet.settings import Settings, load
from callsheet.stack.plan import LAUNCHER_EXTRA_S, plan

FOLDER = Path(__file__).resolve().parents[2] / "packaging" / "systemd"
SERVICES = sorted(path.name for path in FOLDER.glob("*.service"))
HOST, BIN = "node7", "/opt/callsheet/bin"
STATE = Path("/var/lib/callsheet")

Unit = dict[str, dict[str, list[str]]]


def parse(name: str) -> Unit:
    """Section -> directive -> its values, in order. Raises AssertionError for a line that is none."""
    found: Unit = {}
    section = ""
    for line in (FOLDER / name).read_text().splitlines():
        if not line or line.startswith(("#", ";")):
            continue
        if heading := re.fullmatch(r"\[(\w+)\]", line):
            section = heading[1]
            found[section] = {}
            continue
        directive, equals, value = line.partition("=")
        assert section, f"{name}: {line!r} stands in no section"
        assert equals, f"{name}: {line!r} is no directive"
        found[section].setdefault(directive, []).append(value)
    return found


def variables(lines: list[str]) -> dict[str, str]:
    return dict(entry.split("=", 1) for line in lines for entry in shlex.split(line))


def example() -> dict[str, str]:
    """The variables of the example file."""
    lines = (FOLDER / "callsheet.env.example").read_text().splitlines()
    return variables([line for line in lines if line and not line.startswith("#")])


def one(unit: Unit, directive: str) -> str:
    (value,) = unit["Service"][directive]
    return value


def argv(name: str, instance: str = "") -> list[str]:
    """What systemd runs for this unit, with the example's variables."""
    unit = parse(name)
    known = {**variables(unit["Service"].get("Environment", [])), **example()}
    line = one(unit, "ExecStart").replace("%i", instance).replace("%H", HOST)
    return shlex.split(re.sub(r"\$\{(\w+)\}", lambda found: known[found[1]], line))


@pytest.fixture
def settings() -> Settings:
    return load(env=example())


@pytest.fixture
def parts(settings: Settings) -> dict[str, Child]:
    return {child.name: child for child in plan(settings, host=HOST)}


PARTS = {
    "beat-1": ("callsheet-beat@.service", "1"),
    "beat-2": ("callsheet-beat@.service", "2"),
    "control-1": ("callsheet-controller@.service", "1"),
    "control-2": ("callsheet-controller@.service", "2"),
    "flower": ("callsheet-flower.service", ""),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_unit_runs_what_the_plan_runs(part: str, parts: dict[str, Child]) -> None:
    python, *rest = argv(*PARTS[part])
    assert python == f"{BIN}/python"
    assert tuple(rest) == parts[part].argv[1:]


def test_the_workers_unit_becomes_the_launcher_of_the_plan(
    parts: dict[str, Child], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program, *words = argv("callsheet-workers.service")
    assert program == f"{BIN}/callsheet"
    became: list[tuple[str, ...]] = []
    monkeypatch.setattr(os, "execv", lambda _, args: became.append(tuple(args)))
    monkeypatch.setattr("callsheet.cli.worker.require_worker", lambda _: None)
    answer = CliRunner().invoke(root, words, env={"CALLSHEET_DATA_DIR": str(tmp_path)})
    assert answer.exit_code == 0, answer.output
    assert became == [(sys.executable, *parts["workers"].argv[1:])]


def test_every_part_of_the_plan_has_a_unit(parts: dict[str, Child]) -> None:
    assert set(parts) == {*PARTS, "workers"}
    assert set(SERVICES) == {name for name, _ in PARTS.values()} | {"callsheet-workers.service"}


@pytest.mark.parametrize("name", SERVICES)
def test_a_unit_comes_back_and_belongs_to_the_target(name: str) -> None:
    unit = parse(name)
    assert one(unit, "Restart") == "always"
    assert float(one(unit, "RestartSec")) >= 1.0, "a pause, or a wrong setting fills the journal"
    assert unit["Unit"]["StartLimitIntervalSec"] == ["0"], "given up after five quick deaths otherwise"
    assert unit["Unit"]["PartOf"] == unit["Install"]["WantedBy"] == ["callsheet.target"]
    assert one(unit, "User") == one(unit, "Group") == "callsheet"
    assert one(unit, "EnvironmentFile") == "/etc/callsheet/callsheet.env"
    assert one(unit, "WorkingDirectory") == str(STATE)


@pytest.mark.parametrize("name", SERVICES)
def test_a_unit_is_stopped_by_its_first_process_and_in_time(
    name: str, parts: dict[str, Child], settings: Settings
) -> None:
    """SIGTERM to the launcher alone: it tells its workers, once."""
    unit = parse(name)
    assert one(unit, "KillMode") == "mixed"
    stop_s = float(one(unit, "TimeoutStopSec"))
    part = next((part for part, (of, _) in PARTS.items() if of == name), "workers")
    assert stop_s > parts[part].grace_s
    assert parts["workers"].grace_s == settings.shutdown_grace_s + LAUNCHER_EXTRA_S


@pytest.mark.parametrize("name", SERVICES)
def test_nothing_hides_what_a_part_must_see(name: str) -> None:
    service = parse(name)["Service"]
    assert service.get("PrivateTmp", ["no"]) == ["no"]
    assert "MemoryDenyWriteExecute" not in service
    assert one(parse(name), "StateDirectory") == STATE.name


def test_the_workers_see_their_gpus_and_outlive_a_killed_child() -> None:
    unit = parse("callsheet-workers.service")
    assert not {"PrivateDevices", "DevicePolicy", "PrivateUsers", "SystemCallFilter"} & set(unit["Service"])
    assert one(unit, "OOMPolicy") == "continue"
    assert one(unit, "LimitMEMLOCK") == "infinity"


def test_the_target_starts_with_the_machine() -> None:
    assert parse("callsheet.target")["Install"]["WantedBy"] == ["multi-user.target"]


def test_the_example_is_understood_whole(settings: Settings) -> None:
    """Each variable of ours in it is a setting; the units read the same folder."""
    assert settings.data_dir == STATE
    named = {name.removeprefix("CALLSHEET_").lower() for name in example() if name.startswith("CALLSHEET_")}
    assert named == {name for name, origin in settings.origins.items() if not origin.startswith("default")}


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not on this machine")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    """With a program that exists, since callsheet lies elsewhere here."""
    for path in FOLDER.iterdir():
        text = re.sub(rf"{BIN}/\w+", sys.executable, path.read_text())
        (tmp_path / path.name).write_text(text)
    units = [str(tmp_path / name) for name in (*SERVICES, "callsheet.target")]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, timeout=60
    )
    ours = [line for line in done.stderr.splitlines() if "callsheet" in line]
    assert (ours, done.returncode) == ([], 0), done.stderr
