"""What the launcher would start; nothing is started here."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from callsheet.errors import AlreadyRunning
from callsheet.processes import RestartWhen
from callsheet.records.gpus import Gpu
from callsheet.settings import Settings, load
from callsheet.workers.__main__ import main
from callsheet.workers.devices import Device
from callsheet.workers.launch import lock, plan

FOUND = Device("h100-0", "h100", 79, "GPU-abc", 2)
DECLARED = Device("a100-0", "a100", 80, "declared-0", 0, declared=True)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path, log_level="WARNING", shutdown_grace_s=7.0)


def test_one_celery_worker_with_one_process_per_gpu(settings: Settings) -> None:
    first, second = plan([FOUND, DECLARED], settings, host="node7")
    assert (first.name, second.name) == ("h100-0", "a100-0")
    line = " ".join(first.argv[1:])
    assert line == (
        "-m celery -A callsheet.app worker --pool prefork --concurrency 1 --hostname h100-0@node7 "
        "--without-gossip --without-mingle --loglevel WARNING"
    )
    assert first.grace_s == 7.0


def test_a_found_gpu_is_pinned_by_uuid_and_a_declared_one_is_not(settings: Settings) -> None:
    found, declared = plan([FOUND, DECLARED], settings, host="node7")
    assert found.env["CUDA_VISIBLE_DEVICES"] == "GPU-abc"
    assert "CUDA_VISIBLE_DEVICES" not in declared.env


def test_the_worker_learns_its_gpu_and_the_settings(settings: Settings) -> None:
    (child,) = plan([FOUND], settings, host="node7")
    told = json.loads(child.env["CALLSHEET_GPU"])
    assert Gpu(**{**told, "queues": (), "resident": ()}) == Gpu(
        "h100-0@node7", "h100", 79, "GPU-abc", "node7", 2
    )
    assert load(dict(child.env)) == settings, "the GPU's variable is no setting"


def test_one_sick_gpu_does_not_stop_the_others_and_a_dismissed_worker_stays_away(settings: Settings) -> None:
    (child,) = plan([FOUND], settings, host="node7")
    assert not child.essential
    assert child.restart.when is RestartWhen.FAILED


def test_each_worker_inherits_its_own_lock(settings: Settings) -> None:
    assert [child.pass_fds for child in plan([FOUND, DECLARED], settings, host="-", lock_fds=[7, 9])] == [
        (7,),
        (9,),
    ]
    assert [child.pass_fds for child in plan([FOUND, DECLARED], settings, host="-")] == [(), ()]


def test_a_gpu_has_one_worker_per_host(settings: Settings) -> None:
    with lock(settings, FOUND, "node7"):
        with pytest.raises(AlreadyRunning, match=r"A worker for h100-0 of .* runs already"):
            lock(settings, FOUND, "node7")
        lock(settings, FOUND, "node8").release()
        lock(settings, DECLARED, "node7").release()


class TestCommand:
    @pytest.fixture(autouse=True)
    def _here(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CALLSHEET_DATA_DIR", str(tmp_path))
        monkeypatch.delenv("CALLSHEET_GPUS", raising=False)

    def test_gpus_as_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["gpus", "--gpus", "h100,a100:40", "-o", "json"]) == 0
        devices = json.loads(capsys.readouterr().out)
        assert [(d["name"], d["vram_gib"], d["declared"]) for d in devices] == [
            ("h100-0", 80, True),
            ("a100-40g-0", 40, True),
        ]

    def test_gpus_as_text(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["gpus", "--gpus", "l4"]) == 0
        assert capsys.readouterr().out.split() == ["l4-0", "l4", "24", "GiB", "declared-0"]

    @pytest.mark.parametrize("command", ["gpus", "run"])
    def test_an_unknown_class_is_a_usage_error(
        self, command: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([command, "--gpus", "h900"]) == 2
        heard = capsys.readouterr()
        assert heard.out == ""
        assert "h900" in heard.err

    def test_a_gpu_that_has_a_worker_is_refused(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        device = Device("h100-0", "h100", 80, "declared-0", 0, declared=True)
        with lock(Settings(data_dir=tmp_path), device, socket.gethostname()):
            assert main(["run", "--gpus", "h100"]) == 6
        assert "A worker for h100-0" in capsys.readouterr().err
