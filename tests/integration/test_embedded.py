"""The embedded server with the real binary: locked, private, and with its data after any end."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from callsheet.errors import AlreadyRunning, SettingsError
from callsheet.settings import load
from callsheet.stack.binary import bundled_binary, find_binary, version_of
from callsheet.stack.embedded import embedded_server
from tests.support.supervised import Program, lives, wait_until
from tests.support.valkey import Valkey


def serve(data_dir: Path) -> Program:
    env = {"CALLSHEET_DATA_DIR": str(data_dir), "CALLSHEET_BROKER_URL": ""}
    return Program([sys.executable, "-m", "callsheet.stack", "server"], env=env)


def url_of(program: Program, data_dir: Path) -> str:
    """The URL once the server is ready; a stale file of an earlier one does not count."""
    file = data_dir / "server.url"
    wait_until(
        lambda: program.process.poll() is not None or (file.exists() and answers(file.read_text())), "ready"
    )
    assert program.process.poll() is None, program.output
    return file.read_text().strip()


def answers(url: str) -> bool:
    try:
        return client(url).ping() is True
    except (redis.RedisError, ValueError):
        return False


def client(url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url.strip(), decode_responses=True, socket_timeout=5, socket_connect_timeout=2
    )


def server_pid(data_dir: Path) -> int:
    return int((data_dir / "valkey" / "pid").read_text())


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Program, str]]:
    with serve(tmp_path) as program:
        yield program, url_of(program, tmp_path)


class TestRunning:
    def test_settings_that_matter(self, running: tuple[Program, str]) -> None:
        config = client(running[1]).config_get("*")
        assert config["appendonly"] == "yes"
        assert config["appendfsync"] == "everysec"
        assert config["maxmemory-policy"] == "noeviction"
        assert config["bind"] == "127.0.0.1"

    def test_other_processes_of_the_data_folder_find_it(
        self, running: tuple[Program, str], tmp_path: Path
    ) -> None:
        settings = load({"CALLSHEET_DATA_DIR": str(tmp_path)})
        assert settings.broker_url == settings.store_url == running[1]

    def test_only_this_user_can_use_it(self, running: tuple[Program, str], tmp_path: Path) -> None:
        for name in ("server.url", "valkey/valkey.conf", "valkey/password"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600, name
        stranger = client(running[1].replace(client(running[1]).get_connection_kwargs()["password"], "guess"))
        with pytest.raises(redis.AuthenticationError):
            stranger.ping()
        command_line = Path(f"/proc/{server_pid(tmp_path)}/cmdline")
        if command_line.exists():
            assert (tmp_path / "valkey" / "password").read_text().strip() not in command_line.read_text()

    def test_a_clean_stop_writes_everything_and_takes_the_url_back(
        self, running: tuple[Program, str], tmp_path: Path
    ) -> None:
        program, url = running
        pid = server_pid(tmp_path)
        client(url).set("film", "kept")
        program.signal(signal.SIGTERM)
        assert program.ends() == 0, program.output
        assert not (tmp_path / "server.url").exists()
        assert not lives(pid)
        with serve(tmp_path) as again:
            assert client(url_of(again, tmp_path)).get("film") == "kept"

    def test_a_crash_of_the_server_is_healed_on_the_same_port(
        self, running: tuple[Program, str], tmp_path: Path
    ) -> None:
        program, url = running
        client(url).set("film", "kept")
        time_to_sync(client(url))
        os.kill(server_pid(tmp_path), signal.SIGKILL)
        program.sees("server was killed by SIGKILL")
        wait_until(lambda: answers(url), "it is back")
        assert client(url).get("film") == "kept"


def time_to_sync(connection: redis.Redis) -> None:
    """Wait until the append-only file holds what was written."""
    wait_until(lambda: connection.info("persistence")["aof_pending_bio_fsync"] == 0, "synced")


class TestLock:
    def test_a_second_server_on_the_folder_is_refused(
        self, running: tuple[Program, str], tmp_path: Path
    ) -> None:
        with serve(tmp_path) as second:
            assert second.ends() == 6
            assert f"Another server runs on {tmp_path / 'valkey'} (pid {running[0].pid})" in second.output
            assert f"kill {running[0].pid}" in second.output
        assert answers(running[1]), "the first one is untouched"
        assert (tmp_path / "server.url").exists()

    def test_the_same_inside_one_process(self, running: tuple[Program, str], tmp_path: Path) -> None:
        with pytest.raises(AlreadyRunning), embedded_server(tmp_path):
            pass

    def test_after_kill_9_nothing_is_left_and_a_new_start_has_port_and_data(
        self, running: tuple[Program, str], tmp_path: Path
    ) -> None:
        program, url = running
        pid = server_pid(tmp_path)
        client(url).set("film", "kept")
        time_to_sync(client(url))
        program.kill9()
        assert (tmp_path / "server.url").exists(), "nobody was left to take it back"
        with serve(tmp_path) as again:  # at once: the lock waits for the dying server
            assert url_of(again, tmp_path) == url, "port and password are remembered"
            assert not lives(pid)
            assert client(url).get("film") == "kept"

    def test_the_lock_is_held_while_a_server_lives_though_its_supervisor_died(self, tmp_path: Path) -> None:
        with embedded_server(tmp_path) as server:
            orphan = subprocess.Popen(server.child().argv, pass_fds=server.child().pass_fds)
            wait_until(server.answers, "it answers")
        try:
            (tmp_path / "valkey" / "lock").write_text("999999999\n")  # as if that supervisor were gone
            with serve(tmp_path) as second:
                assert second.ends() == 6
                assert "a child of it still holds" in second.output
        finally:
            orphan.terminate()
            orphan.wait(10)

    def test_a_stale_url_file_and_a_stale_lock_file_mislead_nobody(self, tmp_path: Path) -> None:
        (tmp_path / "valkey").mkdir()
        (tmp_path / "valkey" / "lock").write_text("999999999\n")
        (tmp_path / "server.url").write_text("redis://127.0.0.1:1/0\n")
        with serve(tmp_path) as program:
            url = url_of(program, tmp_path)
            assert url != "redis://127.0.0.1:1/0"
            assert answers(url)


class TestPort:
    def test_a_taken_port_is_left_to_its_owner(self, tmp_path: Path) -> None:
        with socket.socket() as owner:
            owner.bind(("127.0.0.1", 0))
            owner.listen()
            taken = owner.getsockname()[1]
            (tmp_path / "valkey").mkdir()
            (tmp_path / "valkey" / "port").write_text(f"{taken}\n")
            with embedded_server(tmp_path) as server:
                assert server.port != taken
                assert (tmp_path / "valkey" / "port").read_text() == f"{server.port}\n"

    def test_it_is_remembered(self, tmp_path: Path) -> None:
        with embedded_server(tmp_path) as server:
            first = server.url
        with embedded_server(tmp_path) as server:
            assert server.url == first

    @pytest.mark.parametrize("text", ["", "many", "99999999999", "-1"])
    def test_a_damaged_port_file_is_replaced(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "valkey").mkdir()
        (tmp_path / "valkey" / "port").write_text(text)
        with embedded_server(tmp_path) as server:
            assert 0 < server.port < 65536

    def test_a_server_that_is_not_there_is_told_quickly(self, tmp_path: Path) -> None:
        with embedded_server(tmp_path) as server:
            begun = time.monotonic()
            assert not server.answers()
            assert time.monotonic() - begun < 2

    def test_a_foreign_server_is_not_taken_for_ours(self, tmp_path: Path, valkey: Valkey) -> None:
        with embedded_server(tmp_path) as server:
            foreign = replace(server, port=valkey.port)
            assert not foreign.answers()

    def test_a_folder_with_blanks_and_quotes(self, tmp_path: Path) -> None:
        odd = tmp_path / 'a "b" c'
        with serve(odd) as program:
            assert answers(url_of(program, odd))


class TestBinary:
    def test_the_bundled_one_comes_first(self) -> None:
        bundled = bundled_binary()
        assert bundled is not None
        assert find_binary() == bundled
        assert (version_of(bundled) or (0,)) >= (9, 0)

    def test_one_on_path_must_be_new_enough(self, tmp_path: Path) -> None:
        old = tmp_path / "redis-server"
        old.write_text("#!/bin/sh\necho Redis server v=6.2.14 sha=00000000:0\n")
        old.chmod(0o755)
        with pytest.raises(SettingsError, match=r"redis-server is 6\.2\.14, needed is 7\.0 or later"):
            find_binary(bundled=lambda: None, search_path=str(tmp_path))
        new = tmp_path / "valkey-server"
        new.write_text("#!/bin/sh\necho Valkey server v=8.1.3 sha=00000000:0\n")
        new.chmod(0o755)
        assert find_binary(bundled=lambda: None, search_path=str(tmp_path)) == new

    def test_none_at_all(self, tmp_path: Path) -> None:
        with pytest.raises(SettingsError, match=r"callsheet\[embedded\].*CALLSHEET_BROKER_URL"):
            find_binary(bundled=lambda: None, search_path=str(tmp_path))

    def test_one_that_does_not_tell_its_version(self, tmp_path: Path) -> None:
        mute = tmp_path / "redis-server"
        mute.write_text("#!/bin/sh\nexit 1\n")
        mute.chmod(0o755)
        with pytest.raises(SettingsError, match="does not tell its version"):
            find_binary(bundled=lambda: None, search_path=str(tmp_path))
