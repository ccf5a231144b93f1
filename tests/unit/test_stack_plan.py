"""What ``callsheet up`` would run; nothing is started here."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from callsheet.errors import Refused, SettingsError
from callsheet.processes import Child
from callsheet.records.gpus import Gpu
from callsheet.settings import Settings, load
from callsheet.stack.checks import Registered, connect_host, flower_answers
from callsheet.stack.plan import TICKS, Checks, plan
from callsheet.stack.preflight import check_port, find_workers
from callsheet.stack.up import needs_server
from callsheet.store.memory import MemoryStore

SERVER = Child("server", ("valkey-server",))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path, broker_url="redis://h:1/0", flower_port=5999, shutdown_grace_s=7.0)


def by_name(children: list[Child]) -> dict[str, Child]:
    return {child.name: child for child in children}


class TestPlan:
    def test_the_whole_stack(self, settings: Settings) -> None:
        children = plan(settings, host="node7", server=SERVER)
        assert [child.name for child in children] == [
            "server", "workers", "beat-1", "beat-2", "control-1", "control-2", "flower",
        ]  # fmt: skip

    def test_everything_comes_after_the_server_and_so_stops_before_it(self, settings: Settings) -> None:
        server, *others = plan(settings, host="node7", server=SERVER)
        assert server is SERVER
        assert {child.after for child in others} == {("server",)}

    def test_with_a_server_of_somebody_else_there_is_none_of_ours(self, settings: Settings) -> None:
        children = plan(settings, host="node7")
        assert children[0].name == "workers"
        assert {child.after for child in children} == {()}

    @pytest.mark.parametrize(("port", "flower"), [(0, True), (5555, False)])
    def test_without_flower(self, port: int, flower: bool, settings: Settings) -> None:
        children = plan(settings.replace(flower_port=port), host="node7", flower=flower)
        assert "flower" not in by_name(children)

    def test_commands(self, settings: Settings) -> None:
        lines = {name: " ".join(c.argv[1:]) for name, c in by_name(plan(settings, host="node7")).items()}
        assert lines["workers"] == "-m callsheet.workers run"
        assert lines["beat-1"] == (
            f"-m celery -A callsheet.app beat --schedule {settings.data_dir}/beat-1.db --loglevel INFO"
        )
        assert lines["control-2"] == (
            "-m celery -A callsheet.app worker --pool solo --concurrency 1 --queues callsheet.control "
            "--hostname control-2@node7 --without-gossip --without-mingle --loglevel INFO"
        )
        assert lines["flower"] == "-m celery -A callsheet.app flower --address=127.0.0.1 --port=5999"

    def test_beats_share_no_file(self, settings: Settings) -> None:
        parts = by_name(plan(settings, host="node7"))
        assert (
            not set(parts["beat-1"].argv) & set(parts["beat-2"].argv) & {str(settings.data_dir / "beat-1.db")}
        )

    def test_every_part_gets_the_settings_in_full(self, settings: Settings) -> None:
        for child in plan(settings, host="node7"):
            assert load(dict(child.env)) == settings, child.name

    def test_the_launcher_gets_longer_than_its_workers(self, settings: Settings) -> None:
        assert by_name(plan(settings, host="node7"))["workers"].grace_s > settings.shutdown_grace_s

    def test_checks_and_bound_are_handed_on(self, settings: Settings) -> None:
        checks = Checks(
            workers=lambda: True, controller=lambda node: lambda: node == "control-1@node7", flower=bool
        )
        parts = by_name(plan(settings, host="node7", checks=checks, ready_s=3.0))
        assert parts["workers"].ready is checks.workers
        assert parts["flower"].ready is checks.flower
        ready = parts["control-1"].ready
        assert callable(ready)
        assert ready()
        assert {child.ready_s for child in parts.values()} == {3.0}

    def test_the_procfile_names_every_part_and_nothing_else(self, settings: Settings) -> None:
        text = (Path(__file__).parents[2] / "Procfile").read_text()
        entries = dict(re.findall(r"^([a-z0-9-]+): (.*)$", text, flags=re.MULTILINE))
        names = [child.name for child in plan(settings, host="node7", server=SERVER)]
        assert entries == {name: f"python -m callsheet.stack {name}" for name in names}


class TestMutedLines:
    @pytest.mark.parametrize(
        ("line", "muted"),
        [
            ("Scheduler: Sending due task control (callsheet.tick)", True),
            ("Task callsheet.tick[5973b5e7-6f00] received", True),
            ("Task callsheet.tick[5973b5e7-6f00] succeeded in 0.005s: {}", True),
            ("Task callsheet.tick[5973b5e7-6f00] raised unexpected: KeyError()", False),
            ("beat: Starting...", False),
        ],
    )
    def test_only_ticks_that_went_well(self, line: str, muted: bool) -> None:
        assert bool(TICKS.search(line)) is muted

    def test_debug_shows_everything(self, settings: Settings) -> None:
        assert by_name(plan(settings, host="-"))["beat-1"].mute is TICKS
        assert by_name(plan(settings.replace(log_level="DEBUG"), host="-"))["beat-1"].mute is None


class TestServerNeeded:
    def test_without_a_url(self, tmp_path: Path) -> None:
        assert needs_server(Settings(data_dir=tmp_path))

    def test_a_url_file_left_by_a_killed_stack_is_no_url(self, tmp_path: Path) -> None:
        (tmp_path / "server.url").write_text("redis://127.0.0.1:1/0\n")
        assert needs_server(load({"CALLSHEET_DATA_DIR": str(tmp_path)}))

    def test_with_a_url(self, settings: Settings) -> None:
        assert not needs_server(settings)

    def test_memory_cannot_carry_a_stack(self, settings: Settings) -> None:
        with pytest.raises(SettingsError, match="lives in one process"):
            needs_server(settings.replace(broker_url="memory://"))
        with pytest.raises(SettingsError, match="storage_url"):
            needs_server(settings.replace(storage_url="memory://"))


def gpu(name: str) -> Gpu:
    return Gpu(name, "h100", 80, "u", "node7", 0)


class TestChecks:
    def test_workers_are_ready_when_all_have_a_heartbeat_that_is_new(self) -> None:
        now = [1000.0]
        store = MemoryStore(clock=lambda: now[0])
        store.beat_gpu(gpu("h100-0@node7"), ttl_s=10)  # of a stack that was killed a moment ago
        registered = Registered(lambda: store, ["h100-0@node7", "a100-0@node7"])
        assert not registered()
        now[0] += 1
        store.beat_gpu(gpu("h100-0@node7"), ttl_s=10)
        assert not registered()
        store.beat_gpu(gpu("a100-0@node7"), ttl_s=10)
        assert registered()

    def test_flower_that_is_not_there(self, settings: Settings) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
            assert not flower_answers(settings.replace(flower_port=port))()

    @pytest.mark.parametrize(
        ("listen", "connect"), [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("10.0.0.7", "10.0.0.7")]
    )
    def test_where_to_reach_a_listener(self, listen: str, connect: str) -> None:
        assert connect_host(listen) == connect


class TestPreflight:
    def test_flowers_port_must_be_free(self, settings: Settings) -> None:
        with socket.socket() as owner:
            owner.bind(("127.0.0.1", 0))
            owner.listen()
            taken = settings.replace(flower_port=owner.getsockname()[1])
            with pytest.raises(Refused, match=r"Flower cannot listen on .*CALLSHEET_FLOWER_PORT"):
                check_port(taken)
        check_port(taken)

    def test_a_flower_host_that_is_not_here(self, settings: Settings) -> None:
        with pytest.raises(Refused, match=r"192\.0\.2\.1"):
            check_port(settings.replace(flower_host="192.0.2.1"))

    def test_workers_to_wait_for(self, settings: Settings) -> None:
        host = socket.gethostname()
        found = find_workers(settings.replace(gpus=("h100", "a100", "h100")))
        assert found == [f"h100-0@{host}", f"a100-0@{host}", f"h100-1@{host}"]
