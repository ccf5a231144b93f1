"""The command line fails well: a message, an exit code, no traceback, data or nothing on stdout."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from callsheet.settings import load
from tests.support.by_hand import Hand
from tests.support.cli import COMMAND, Cli
from tests.support.live import until

NAMES = ("--model", "tiny-wan")


@pytest.fixture
def mute() -> Iterator[str]:
    """URL of a server that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(50)
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0"


@pytest.fixture
def started_s(offline: Cli) -> float:
    """Seconds that a submit takes on this machine now which is refused before it needs a server."""
    begin = time.monotonic()
    assert offline("job", "submit", "a cat", "--model", "nope").code == 2
    return time.monotonic() - begin


def test_an_unreachable_broker_at_submit_is_told_within_5_seconds(offline: Cli, started_s: float) -> None:
    begin = time.monotonic()
    said = offline("job", "submit", "a cat", *NAMES)
    assert time.monotonic() - begin < 5 + started_s
    assert (said.code, said.out) == (5, "")
    assert "127.0.0.1:1" in said.err
    assert "Traceback" not in said.err


def test_a_broker_that_never_answers_is_told_within_5_seconds(
    offline: Cli, started_s: float, mute: str
) -> None:
    begin = time.monotonic()
    said = offline("job", "submit", "a cat", *NAMES, "-o", "json", env={"CALLSHEET_BROKER_URL": mute})
    assert time.monotonic() - begin < 5 + started_s
    assert (said.code, said.out, said.error["type"]) == (5, "", "Unreachable")


def test_a_server_that_is_no_redis_is_unreachable_too(offline: Cli) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(5)
        url = f"redis://127.0.0.1:{server.getsockname()[1]}/0"
        call = offline.start("job", "list", env={**offline.env, "CALLSHEET_BROKER_URL": url})
        while call.poll() is None:
            server.settimeout(0.2)
            try:
                peer, _ = server.accept()
            except TimeoutError:
                continue
            with peer:
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        out, err = call.communicate()
    assert (call.returncode, out) == (5, ""), err
    assert "Traceback" not in err


@pytest.mark.parametrize("command", [["config"], ["job", "list"], ["up"], ["worker"]])
def test_a_wrong_setting_stops_every_command_and_is_named(offline: Cli, command: list[str]) -> None:
    said = offline(*command, env={"CALLSHEET_LEASE_S": "-4"})
    assert (said.code, said.out) == (2, "")
    assert "lease_s = -4 (from CALLSHEET_LEASE_S)" in said.err


@pytest.mark.parametrize("command", ["up", "worker"])
def test_a_wrong_option_that_stands_for_a_setting_is_named_as_it_was_written(
    offline: Cli, command: str
) -> None:
    said = offline(command, "--gpus", "quantum")
    assert (said.code, said.out) == (2, "")
    assert "gpus = quantum (from --gpus)" in said.err


@pytest.mark.parametrize(
    "command", [("job", "cancel", "x"), ("gpu", "cordon", "x", "--reason", "fan"), ("job", "preempt", "x")]
)
def test_who_acts_has_a_name(offline: Cli, command: tuple[str, ...]) -> None:
    said = offline(*command, "--as", " ")
    assert (said.code, said.out) == (2, "")
    assert "a name is needed" in said.err


@pytest.mark.parametrize(
    ("deadline", "fault"), [("2020-01-01", "has passed"), ("0s", "has passed"), ("2099-01-01", "366 days")]
)
def test_a_deadline_that_cannot_be_is_told_as_it_was_written(offline: Cli, deadline: str, fault: str) -> None:
    said = offline("job", "submit", "a cat", *NAMES, "--deadline", deadline)
    assert (said.code, said.out) == (2, "")
    assert f"'{deadline}'" in said.err
    assert fault in said.err


def test_debug_shows_the_traceback_before_the_message(offline: Cli) -> None:
    by_option = offline("config", "--debug", env={"CALLSHEET_LEASE_S": "-4"})
    by_variable = offline("config", env={"CALLSHEET_LEASE_S": "-4", "CALLSHEET_DEBUG": "1"})
    for said in (by_option, by_variable):
        assert said.code == 2
        assert "Traceback" in said.err
        assert said.err.splitlines()[-1].startswith("  - lease_s")


def test_json_errors_are_one_line_and_the_last(offline: Cli) -> None:
    for said in (offline("-o", "json", "job", "lst"), offline("models", "show", "nope", "-ojson")):
        error = json.loads(said.err)["error"]
        assert error["exit_code"] == said.code
        assert said.out == ""


def test_a_reader_that_leaves_early_is_no_fault(cli: Cli) -> None:
    hand = Hand(load(env=cli.env))
    for _ in range(40):
        hand.submit(prompt="x" * 3000)
    call = cli.start("job", "list", "-o", "json")
    assert call.stdout is not None
    assert call.stderr is not None
    call.stdout.close()
    assert call.wait(timeout=50) == 141
    assert call.stderr.read() == ""


def test_a_full_disk_is_told(offline: Cli) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("w") as full:
        call = offline.start("config", stdout=full)
        _, err = call.communicate(timeout=50)
    assert call.returncode == 1
    assert err.splitlines() == [err.strip()]
    assert err.startswith("Error: ")


def test_ctrl_c_ends_with_130_and_no_traceback(cli: Cli) -> None:
    hand = Hand(load(env=cli.env))
    call = cli.start("job", "watch", hand.submit())
    assert call.stderr is not None
    assert "pending" in call.stderr.readline()  # it is watching
    call.send_signal(signal.SIGINT)
    out, err = call.communicate(timeout=50)
    assert (call.returncode, out, err) == (130, "", "")


def test_letters_that_the_terminal_lacks_stop_nothing(cli: Cli) -> None:
    hand = Hand(load(env=cli.env))
    job_id = hand.submit(prompt="قطة 🐈 é")
    posix = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    table = cli("job", "show", job_id, env=posix)
    assert (table.code, table.err) == (0, "")
    document = cli("job", "show", job_id, "-o", "json", env=posix)
    assert document.json["job"]["request"]["prompt"] == "قطة 🐈 é"


def test_a_terminal_gets_colours_and_a_pipe_none(cli: Cli) -> None:
    hand = Hand(load(env=cli.env))
    job_id = hand.submit()
    coloured = on_terminal(cli, "job", "list", "--state", "pending")
    assert job_id in coloured
    assert "\x1b[" in coloured
    assert "\x1b[3" not in on_terminal(cli, "job", "show", job_id, NO_COLOR="1")
    assert "\x1b" not in on_terminal(cli, "job", "list", "-o", "json")


def test_bars_move_on_a_terminal(cli: Cli) -> None:
    hand = Hand(load(env=cli.env))
    job_id = hand.submit()
    hand.succeed(job_id, b"film")
    shown = on_terminal(cli, "job", "watch", job_id)
    assert "8/8" in shown
    assert "succeeded" in shown


def on_terminal(cli: Cli, *args: str, **env: str) -> str:
    """What a terminal of 120 columns receives."""
    primary, secondary = os.openpty()
    variables = {**cli.env, "COLUMNS": "120", "TERM": "xterm-256color", **env}
    with subprocess.Popen(
        [*COMMAND, *args], stdin=secondary, stdout=secondary, stderr=secondary, env=variables, cwd=cli.folder
    ) as call:
        os.close(secondary)
        received = b""
        while chunk := _read(primary):
            received += chunk
        os.close(primary)
        until(lambda: call.poll() is not None, what="the end of the command")
    return received.decode()


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 65536)
    except OSError:  # Linux: the other side is closed
        return b""
