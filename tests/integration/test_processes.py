"""The supervisor with real processes: what lives, what dies, and what is left behind (nothing)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from callsheet.processes.guard import BARE_PYTHON, SHIM
from tests.support.prefork_app import app as prefork_app
from tests.support.supervised import SLEEPER, guards, lives, pid_in, supervise, wait_until
from tests.support.valkey import Valkey

#: A tree: boss -> nested supervisor -> a parent that has forked a child of its own.
TREE = f"""
SLEEPER = {SLEEPER!r}
NESTED = '''
import os, subprocess, sys
from pathlib import Path
from callsheet.processes import Child, Supervisor
DIR, PDEATHSIG, SLEEPER = Path(sys.argv[1]), eval(sys.argv[2]), sys.argv[3]
(DIR / "nested").write_text(str(os.getpid()))
FORKS = "import os, sys, time; os.fork(); open(sys.argv[1] + str(os.getpid()), 'w').close(); time.sleep(300)"
Supervisor([
    Child("worker", (sys.executable, "-c", SLEEPER, str(DIR / "worker"))),
    Child("forks", (sys.executable, "-c", FORKS, str(DIR / "fork-"))),
], name="nested", pdeathsig=PDEATHSIG).run()
'''
children = [
    Child("plain", python(SLEEPER, DIR / "plain")),
    Child("nested", python(NESTED, DIR, PDEATHSIG, SLEEPER), nested=True),
]
"""


def shim(parent: int, guard: str, *argv: str) -> list[str]:
    return [*BARE_PYTHON, SHIM, str(parent), guard, *argv]


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def tree_pids(folder: Path) -> list[int]:
    wait_until(lambda: len(list(folder.glob("fork-*"))) == 2, "both halves of the fork run")
    forked = [int(path.name.removeprefix("fork-")) for path in folder.glob("fork-*")]
    return [pid_in(folder / name) for name in ("plain", "nested", "worker")] + forked


class TestNoOrphans:
    @guards
    def test_kill_9_of_the_supervisor_takes_all_descendants_along(self, guard: str, tmp_path: Path) -> None:
        with supervise(TREE, tmp_path, guard=guard) as boss:
            pids = tree_pids(tmp_path)
            assert all(lives(pid) for pid in pids)
            boss.kill9()
            wait_until(lambda: not any(lives(pid) for pid in pids), "the whole tree is gone", 5)

    @guards
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_a_clean_stop_leaves_nothing(self, guard: str, number: signal.Signals, tmp_path: Path) -> None:
        with supervise(TREE, tmp_path, guard=guard) as boss:
            pids = tree_pids(tmp_path)
            boss.signal(number)
            assert boss.ends() == 0, boss.output
            assert not any(lives(pid) for pid in pids)

    def test_a_busy_prefork_child_dies_with_the_launcher_of_its_parent(self, tmp_path: Path) -> None:
        with Valkey() as broker:
            prefork_app.conf.broker_url = broker.url
            code = f"""
celery = (sys.executable, "-m", "celery", "-A", "tests.support.prefork_app")
worker = ("worker", "-P", "prefork", "-c", "1", "--without-mingle", "-l", "INFO")
children = [Child("celery", celery + worker, env={{"PREFORK_BROKER": {broker.url!r}}},
                  ready=re.compile(" ready[.]"))]
"""
            with supervise(code, tmp_path) as boss:
                boss.sees("all ready")
                prefork_app.send_task("tests.support.prefork_app.busy", [str(tmp_path / "child")])
                child = pid_in(tmp_path / "child")
                parent = int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1])
                assert parent != boss.pid
                boss.kill9()
                wait_until(
                    lambda: not lives(parent) and not lives(child), "parent and pool child are gone", 5
                )

    @guards
    def test_a_supervisor_that_died_before_its_watchdog_knew_the_child_runs_nothing(
        self, guard: str, tmp_path: Path
    ) -> None:
        argv = shim(os.getpid(), guard, "touch", str(tmp_path / "ran"))
        assert subprocess.run(argv, input=b"", check=False).returncode == 127
        assert not (tmp_path / "ran").exists()

    @guards
    def test_a_parent_that_was_replaced_by_init_runs_nothing(self, guard: str, tmp_path: Path) -> None:
        argv = shim(1, guard, "touch", str(tmp_path / "ran"))
        assert subprocess.run(argv, input=b"\n", check=False).returncode == 127
        assert not (tmp_path / "ran").exists()

    @guards
    def test_the_shim_leaves_the_command_an_empty_input_and_pythons_signals_undone(self, guard: str) -> None:
        code = "import signal, sys; print(repr(sys.stdin.read()))"
        shell = f"grep -q 'SigIgn:.*1000$' /proc/self/status; echo $?; {sys.executable} -c '{code}'"
        argv = shim(os.getpid(), guard, "sh", "-c", shell)
        said = subprocess.run(argv, input=b"\nmore", capture_output=True, check=True).stdout.decode()
        assert said.split() == ["1", "''"], "SIGPIPE is bit 13, and not to be ignored"

    def test_without_its_watchdog_supervision_goes_on(self, tmp_path: Path) -> None:
        code = f"""
children = [Child("a", python({SLEEPER!r}, DIR / "a"), restart=Restart(first_s=0.01))]
"""
        with supervise(code, tmp_path) as boss:
            first = pid_in(tmp_path / "a")
            for pid in children_of(boss.pid):
                if "watchdog.py" in Path(f"/proc/{pid}/cmdline").read_text():
                    os.kill(pid, signal.SIGKILL)
            (tmp_path / "a").unlink()
            os.kill(first, signal.SIGKILL)
            second = pid_in(tmp_path / "a")
            boss.signal(signal.SIGTERM)
            assert boss.ends() == 0, boss.output
            assert not lives(second)

    @guards
    def test_what_a_dead_child_leaves_in_its_group_is_killed_before_the_next_start(
        self, guard: str, tmp_path: Path
    ) -> None:
        code = """
FORKS = '''
import os, signal, sys, time
folder = sys.argv[1]
if os.fork() == 0:
    open(folder + "/left-" + str(os.getpid()), "w").close()
    time.sleep(300)
while not any(name.startswith("left-") for name in os.listdir(folder)):
    time.sleep(0.01)
os._exit(3)
'''
children = [Child("forks", python(FORKS, DIR), restart=Restart(RestartWhen.NEVER))]
"""
        with supervise(code, tmp_path, guard=guard) as boss:
            assert boss.ends() == 1
            (left,) = tmp_path.glob("left-*")
            wait_until(lambda: not lives(int(left.name.removeprefix("left-"))), "the left child is gone", 5)
