"""``callsheet`` tells about itself: quickly, without loading what only commands need."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from callsheet._version import __version__
from tests.support.cli import Cli, clean_env

HEAVY = ("celery", "kombu", "redis", "rich", "obstore", "torch", "diffusers", "numpy", "flower", "tomllib")
VERBS = "submit, list, show, watch, cancel, requeue, preempt, download"
HELPS = (
    ["-h"],
    ["job", "-h"],
    ["job", "submit", "--help"],
    ["job", "requeue", "-h"],
    ["gpu", "-h"],
    ["gpu", "drain", "-h"],
    ["models", "-h"],
    ["doctor", "-h"],
    ["--version"],
)

PROBE = f"""
import sys
from callsheet.cli import main
for args in {HELPS!r}:
    assert main(args) == 0
    loaded = {{name.partition(".")[0] for name in sys.modules}} & set({HEAVY!r})
    assert not loaded, (args, loaded)
"""


def test_help_loads_nothing_heavy() -> None:
    command = [sys.executable, "-c", PROBE]
    done = subprocess.run(command, capture_output=True, text=True, env=clean_env(), timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: ") == len(HELPS) - 1


def test_help_is_quick(offline: Cli) -> None:
    """The goal is 0.2 s on an idle machine; the bound leaves room for a busy one, the best of five counts."""
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        assert offline("-h").code == 0
        seconds.append(time.perf_counter() - begin)
    assert min(seconds) < 0.8


def test_version(offline: Cli) -> None:
    assert offline("--version").out == f"callsheet {__version__}\n"


def test_a_bare_group_shows_its_help_and_is_a_usage_error(offline: Cli) -> None:
    said = offline("job")
    assert said.code == 2
    assert said.out == ""
    assert "submit" in said.err
    assert said.err.endswith(f"a command is missing: one of {VERBS}\n")


@pytest.mark.parametrize(
    ("args", "near"),
    [
        (["jbo"], "job"),
        (["job", "submti"], "submit"),
        (["models", "shwo"], "show"),
        (["gpu", "drian"], "drain"),
    ],
)
def test_an_unknown_command_suggests_the_nearest(offline: Cli, args: list[str], near: str) -> None:
    said = offline(*args)
    assert said.code == 2
    assert said.out == ""
    assert f"did you mean '{near}'?" in said.err


def test_an_unknown_option_is_a_usage_error(offline: Cli) -> None:
    said = offline("job", "list", "--stat", "pending")
    assert said.code == 2
    assert "--state" in said.err
    assert "Traceback" not in said.err


def test_the_shell_gets_completions(offline: Cli) -> None:
    env = {"_CALLSHEET_COMPLETE": "bash_complete", "COMP_WORDS": "callsheet job s", "COMP_CWORD": "2"}
    assert offline(env=env).out.split() == ["plain,submit", "plain,show"]


def test_the_shell_gets_its_completion_script(offline: Cli) -> None:
    assert "_CALLSHEET_COMPLETE=bash_complete" in offline(env={"_CALLSHEET_COMPLETE": "bash_source"}).out
