"""``callsheet up``, end to end: ready when it says so, refused when it must be, nothing left in any case."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery

from callsheet.settings import load
from callsheet.store import open_store
from tests.support.supervised import Program, lives, wait_until
from tests.support.valkey import Valkey, free_port

READY_S = 120.0
GPUS = "h100,a100"
HOST = socket.gethostname()


def start(data_dir: Path, *args: str, **env: str) -> Program:
    """``callsheet up`` with declared GPUs and a port of its own for Flower."""
    command = [sys.executable, "-m", "callsheet", "up", "--data-dir", str(data_dir)]
    defaults = {"CALLSHEET_BROKER_URL": "", "CALLSHEET_GPUS": GPUS, "CALLSHEET_FLOWER_PORT": str(free_port())}
    return Program([*command, *args], env={**defaults, **env})


def descendants(pid: int) -> list[int]:
    """Every process below one, as the system knows them now."""
    below: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            below += [int(child), *descendants(int(child))]
    return below


def command_lines(pids: list[int]) -> str:
    return "\n".join(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") for pid in pids)


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("up")


@pytest.fixture(scope="module")
def stack(data_dir: Path) -> Iterator[Program]:
    """One stack for the tests that look at it; each may run alone, and the last one stops it."""
    with start(data_dir) as program:
        program.sees("up        | ready in", READY_S)
        yield program


@linux
class TestWholeStack:
    def test_the_ready_line_says_where_everything_is(self, stack: Program, data_dir: Path) -> None:
        (line,) = [line for line in stack.output.splitlines() if " | ready in" in line]
        assert f"workers h100-0@{HOST}, a100-0@{HOST}" in line
        assert re.search(r"broker redis://:\*\*\*@127\.0\.0\.1:\d+/0", line), "the password is masked"
        assert re.search(r"Flower http://127\.0\.0\.1:\d+", line)
        assert f"films file://{data_dir}/films" in line
        assert f"data {data_dir}" in line

    def test_ready_means_ready(self, stack: Program, data_dir: Path) -> None:
        settings = load({"CALLSHEET_DATA_DIR": str(data_dir)})
        store = open_store(settings.store_url, retention_s=60, connect_timeout_s=3)
        registered = {gpu.name: gpu for gpu in store.gpus()}
        store.close()
        assert set(registered) == {f"h100-0@{HOST}", f"a100-0@{HOST}"}
        assert all(gpu.queues and gpu.declared for gpu in registered.values())
        flower = re.search(r"Flower (http://\S+)", stack.output)
        assert flower is not None
        with urllib.request.urlopen(f"{flower[1]}/healthcheck", timeout=5) as answer:
            assert answer.status == 200
        nodes = [f"control-{n}@{HOST}" for n in (1, 2)]
        replies = Celery(broker=settings.broker_url, set_as_current=False).control.ping(
            destination=nodes, timeout=5
        )
        assert {name for reply in replies for name in reply} == set(nodes)

    def test_its_log_has_columns_and_no_ticks(self, stack: Program) -> None:
        names = {line.split(" | ")[0].strip() for line in stack.output.splitlines() if " | " in line}
        assert {"up", "h100-0", "a100-0", "beat-1", "beat-2", "control-1", "control-2"} <= names
        assert "Sending due task" not in stack.output

    def test_a_second_one_on_the_same_folder_is_refused(self, stack: Program, data_dir: Path) -> None:
        with start(data_dir) as second:
            assert second.ends() == 6
            assert f"Another stack runs on {data_dir} (pid {stack.pid})" in second.output
        assert stack.process.poll() is None

    def test_a_worker_that_is_killed_is_started_again(self, stack: Program) -> None:
        worker = self._pid(stack, f"--hostname h100-0@{HOST}")
        os.kill(worker, signal.SIGKILL)
        stack.sees("h100-0 was killed by SIGKILL")
        wait_until(lambda: self._pid(stack, f"--hostname h100-0@{HOST}") not in (0, worker), "a new one runs")

    def test_the_launcher_that_is_killed_is_started_again(self, stack: Program) -> None:
        launcher = next(
            pid for pid in descendants(stack.pid) if "callsheet.workers run" in command_lines([pid])
        )
        worker = self._pid(stack, f"--hostname h100-0@{HOST}")
        os.kill(launcher, signal.SIGKILL)
        stack.sees("workers was killed by SIGKILL")
        wait_until(lambda: self._pid(stack, f"--hostname h100-0@{HOST}") not in (0, worker), "a new one runs")

    def test_ctrl_c_stops_everything(self, stack: Program, data_dir: Path) -> None:
        below = descendants(stack.pid)
        os.killpg(stack.pid, signal.SIGINT)  # as a terminal does
        assert stack.ends(60) == 0, stack.output
        assert not any(lives(pid) for pid in below)
        assert not (data_dir / "server.url").exists()
        assert stack.output.rstrip().endswith("up        | stopped")
        assert "SIGKILL" not in stack.output.split("SIGINT: stopping")[1], "everything stopped by itself"

    @staticmethod
    def _pid(stack: Program, text: str) -> int:
        """The direct child of the launcher whose command line holds ``text``; 0 when there is none now."""
        for pid in descendants(stack.pid):
            try:
                parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
                if text in command_lines([pid]) and "callsheet.workers" in command_lines([int(parent)]):
                    return pid
            except OSError:
                continue
        return 0


@linux
def test_kill_9_leaves_no_orphan_and_the_next_start_is_not_misled(tmp_path: Path) -> None:
    with start(tmp_path, "--no-flower", CALLSHEET_GPUS="h100") as stack:
        stack.sees("ready in", READY_S)
        below = descendants(stack.pid)
        lines = command_lines(below)
        assert lines.count(f"--hostname h100-0@{HOST}") == 2, "Celery worker and its pool child"
        assert "valkey-server" in lines
        stack.kill9()
        wait_until(lambda: not any(lives(pid) for pid in below), "everything is gone", 5)
    with start(
        tmp_path, "--no-flower", "--quiet", CALLSHEET_GPUS="h100"
    ) as again:  # at once, on the stale files
        again.sees("ready in", READY_S)
        assert "h100-0 " not in again.output, "quiet: no word of the parts"
        again.signal(signal.SIGTERM)
        assert again.ends(60) == 0


def test_with_a_server_of_somebody_else_none_is_started(tmp_path: Path) -> None:
    with Valkey() as server, start(tmp_path, "--no-flower", CALLSHEET_BROKER_URL=server.url) as stack:
        stack.sees("ready in", READY_S)
        assert not (tmp_path / "valkey").exists()
        stack.signal(signal.SIGINT)
        assert stack.ends(60) == 0
        assert server.client().ping()


def test_without_a_gpu_nothing_is_started(tmp_path: Path) -> None:
    with start(tmp_path, CALLSHEET_GPUS="", CUDA_VISIBLE_DEVICES="") as stack:
        assert stack.ends() == 2
        assert "No GPU was found" in stack.output
        assert 'CALLSHEET_GPUS="h100,a100"' in stack.output
        assert not (tmp_path / "valkey").exists()


def test_a_taken_flower_port_is_refused(tmp_path: Path) -> None:
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        port = str(owner.getsockname()[1])
        with start(tmp_path, CALLSHEET_FLOWER_PORT=port) as stack:
            assert stack.ends() == 6
            assert f"Flower cannot listen on 127.0.0.1:{port}" in stack.output


@linux
def test_a_part_that_does_not_come_up_ends_the_start_with_its_name(tmp_path: Path) -> None:
    unreachable = f"redis://127.0.0.1:{free_port()}/0"
    code = (
        "import sys; from callsheet.settings import load; from callsheet.stack import UpOptions, run_up\n"
        "from callsheet.errors import CallsheetError\n"
        "try: run_up(load(), UpOptions(flower=False, ready_s=3))\n"
        "except CallsheetError as error: print('FAILED', error); sys.exit(error.exit_code)"
    )
    env = {"CALLSHEET_DATA_DIR": str(tmp_path), "CALLSHEET_GPUS": "h100", "CALLSHEET_BROKER_URL": unreachable}
    with Program([sys.executable, "-u", "-c", code], env=env) as stack:
        assert stack.ends(60) == 1
        assert re.search(r"FAILED \S+ was not ready within 3 s", stack.output)


@linux
def test_the_parts_of_the_procfile_make_the_same_stack(tmp_path: Path) -> None:
    env = {"CALLSHEET_DATA_DIR": str(tmp_path), "CALLSHEET_GPUS": "h100", "CALLSHEET_BROKER_URL": ""}
    part = [sys.executable, "-m", "callsheet.stack"]
    with (
        Program([*part, "workers"], env=env) as workers,
        Program([*part, "control-1"], env=env) as control,
        Program([*part, "server"], env=env) as server,
    ):
        control.sees("ready.", READY_S)
        workers.sees(f"h100-0@{HOST} ready.", READY_S)
        assert "celery -A callsheet.app worker" in command_lines([control.pid]), "it became its command"
        for program in (workers, control, server):
            program.signal(signal.SIGTERM)
            assert program.ends(60) == 0, program.output


def test_an_unknown_part_is_a_usage_error(tmp_path: Path) -> None:
    with Program(
        [sys.executable, "-m", "callsheet.stack", "beet-1"], env={"CALLSHEET_DATA_DIR": str(tmp_path)}
    ) as no:
        assert no.ends() == 2
        assert "beat-1" in no.output


def test_gpus_as_json_are_data_on_stdout(tmp_path: Path) -> None:
    env = {"CALLSHEET_DATA_DIR": str(tmp_path)}
    with Program(
        [sys.executable, "-m", "callsheet.workers", "gpus", "--gpus", "l4", "-o", "json"], env=env
    ) as found:
        assert found.ends() == 0
        assert json.loads(found.output)[0]["name"] == "l4-0"
