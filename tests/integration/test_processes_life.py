"""The supervisor with real processes: stopping, restarting, readiness, output."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from tests.support.supervised import SLEEPER, guards, lives, pid_in, supervise, wait_until


class TestStopping:
    @guards
    def test_ctrl_c_on_the_terminal_reaches_the_supervisor_alone(self, guard: str, tmp_path: Path) -> None:
        code = """
TELLS = '''
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: print("got SIGINT", flush=True))
signal.signal(signal.SIGTERM, lambda *_: (print("got SIGTERM", flush=True), sys.exit(0)))
print("set", flush=True)
time.sleep(300)
'''
children = [Child("tells", python(TELLS), ready=re.compile("set"))]
"""
        with supervise(code, tmp_path, guard=guard) as boss:
            boss.sees("all ready")
            os.killpg(boss.pid, signal.SIGINT)
            assert boss.ends() == 0
            assert "got SIGTERM" in boss.output
            assert "got SIGINT" not in boss.output

    def test_a_child_stops_before_what_it_needs(self, tmp_path: Path) -> None:
        code = """
SLOW = '''
import signal, sys, time
def stop(*_):
    time.sleep(float(sys.argv[2])); print(sys.argv[1], "stopped", flush=True); sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print("set", flush=True)
time.sleep(300)
'''
up = dict(ready=re.compile("set"))
children = [Child("server", python(SLOW, "server", 0), **up),
            Child("worker", python(SLOW, "worker", 0.3), after=("server",), **up)]
"""
        with supervise(code, tmp_path) as boss:
            boss.sees("all ready")
            boss.signal(signal.SIGTERM)
            assert boss.ends() == 0
            assert re.findall(r"(\w+) stopped", boss.output) == ["worker", "server"]

    @guards
    def test_a_deaf_child_is_killed_after_its_grace(self, guard: str, tmp_path: Path) -> None:
        with supervise(deaf(grace_s=0.2), tmp_path, guard=guard) as boss:
            boss.sees("all ready")
            boss.signal(signal.SIGTERM)
            assert boss.ends() == 0
            assert "deaf did not stop in time: SIGKILL" in boss.output
            assert not lives(pid_in(tmp_path / "deaf"))

    def test_a_second_ctrl_c_hurries(self, tmp_path: Path) -> None:
        with supervise(deaf(grace_s=300), tmp_path) as boss:
            boss.sees("all ready")
            boss.signal(signal.SIGINT)
            boss.sees("stopping; once more")
            boss.signal(signal.SIGINT)
            assert boss.ends(within_s=10) == 0
            assert not lives(pid_in(tmp_path / "deaf"))

    def test_a_stop_during_the_back_off_does_not_wait_for_it(self, tmp_path: Path) -> None:
        code = (
            "children = [Child('a', python('raise SystemExit(1)'), restart=Restart(first_s=300, most_s=300))]"
        )
        with supervise(code, tmp_path) as boss:
            boss.sees("starting it again in 300 s")
            boss.signal(signal.SIGTERM)
            assert boss.ends(within_s=10) == 0

    def test_a_stop_before_everything_has_started(self, tmp_path: Path) -> None:
        code = f"""
children = [Child("never", python({SLEEPER!r}, DIR / "never"), ready=lambda: False),
            Child("waits", python({SLEEPER!r}, DIR / "waits"), after=("never",))]
"""
        with supervise(code, tmp_path) as boss:
            never = pid_in(tmp_path / "never")
            boss.signal(signal.SIGTERM)
            assert boss.ends() == 0
            assert not lives(never)
            assert not (tmp_path / "waits").exists()


def deaf(grace_s: float) -> str:
    """A child that hears no signal but SIGKILL."""
    return f"""
DEAF = '''
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
open(sys.argv[1], "w").write(str(os.getpid()))
print("set", flush=True)
time.sleep(300)
'''
children = [Child("deaf", python(DEAF, DIR / "deaf"), ready=re.compile("set"), grace_s={grace_s})]
"""


class TestRestarting:
    @guards
    def test_what_dies_is_started_again(self, guard: str, tmp_path: Path) -> None:
        code = f'children = [Child("a", python({SLEEPER!r}, DIR / "a"), restart=Restart(first_s=0.01))]'
        with supervise(code, tmp_path, guard=guard) as boss:
            first = pid_in(tmp_path / "a")
            (tmp_path / "a").unlink()
            os.kill(first, signal.SIGKILL)
            second = pid_in(tmp_path / "a")
            assert second != first
            boss.sees("starting it again in 0.01 s")
            boss.signal(signal.SIGTERM)
            assert boss.ends() == 0

    def test_it_gives_up_loudly_after_quick_deaths_in_a_row(self, tmp_path: Path) -> None:
        code = f"""
children = [Child("fine", python({SLEEPER!r}, DIR / "fine")),
            Child("sick", python("print('no such GPU'); raise SystemExit(7)"),
                  restart=Restart(first_s=0.01, give_up_after=3))]
"""
        with supervise(code, tmp_path) as boss:
            assert boss.ends() == 1
            assert boss.output.count("sick | no such GPU") == 3
            assert re.search(
                r"FAILED sick ended with code 7 after \d+\.\d s, 3 times in a row: giving up", boss.output
            )
            assert boss.output.rstrip().endswith("no such GPU"), "the last lines stand in the message"
        assert not (tmp_path / "fine").exists() or not lives(pid_in(tmp_path / "fine"))

    def test_back_off_grows(self, tmp_path: Path) -> None:
        code = """
rule = Restart(first_s=0.01, factor=3, give_up_after=4)
children = [Child("sick", python("raise SystemExit(1)"), restart=rule)]
"""
        with supervise(code, tmp_path) as boss:
            assert boss.ends() == 1
            assert re.findall(r"again in ([\d.]+) s", boss.output) == ["0.01", "0.03", "0.09"]

    def test_the_others_go_on_when_a_dispensable_child_gives_up(self, tmp_path: Path) -> None:
        code = f"""
rule = Restart(first_s=0.01, give_up_after=2)
children = [Child("fine", python({SLEEPER!r}, DIR / "fine"), essential=False),
            Child("sick", python("raise SystemExit(1)"), restart=rule, essential=False)]
"""
        with supervise(code, tmp_path) as boss:
            boss.sees("giving up on it, the others go on")
            boss.sees("all ready")
            assert lives(pid_in(tmp_path / "fine"))
            boss.signal(signal.SIGTERM)
            assert boss.ends() == 0

    def test_it_fails_when_every_child_gave_up(self, tmp_path: Path) -> None:
        code = """
rule = Restart(first_s=0.01, give_up_after=1)
children = [Child(name, python("raise SystemExit(1)"), restart=rule, essential=False) for name in ("a", "b")]
"""
        with supervise(code, tmp_path) as boss:
            assert boss.ends() == 1
            assert "FAILED No process is left: a, b gave up" in boss.output

    def test_who_leaves_in_order_is_let_go(self, tmp_path: Path) -> None:
        code = 'children = [Child("done", python("print(1)"), restart=Restart(RestartWhen.FAILED))]'
        with supervise(code, tmp_path) as boss:
            assert boss.ends() == 0
            assert "done left in order" in boss.output

    @guards
    def test_a_command_that_does_not_exist_is_told(self, guard: str, tmp_path: Path) -> None:
        code = 'children = [Child("gone", ("/no/such/thing",), restart=Restart(RestartWhen.NEVER))]'
        with supervise(code, tmp_path, guard=guard) as boss:
            assert boss.ends() == 1
            assert "gone | cannot run /no/such/thing: No such file or directory" in boss.output

    @guards
    def test_how_a_child_ended_is_told(self, guard: str, tmp_path: Path) -> None:
        kill_self = "import os; os.kill(os.getpid(), 11)"
        code = f'children = [Child("crash", python({kill_self!r}), restart=Restart(RestartWhen.NEVER))]'
        with supervise(code, tmp_path, guard=guard) as boss:
            assert boss.ends() == 1
            assert "SIGSEGV" in boss.output or "code 139" in boss.output


class TestReadiness:
    def test_a_child_starts_when_what_it_needs_is_ready(self, tmp_path: Path) -> None:
        code = f"""
children = [Child("server", python({SLEEPER!r}, DIR / "server"), ready=lambda: (DIR / "go").exists(),
                  on_ready=lambda: (DIR / "told").touch()),
            Child("worker", python({SLEEPER!r}, DIR / "worker"), after=("server",))]
"""
        with supervise(code, tmp_path) as boss:
            pid_in(tmp_path / "server")
            assert not (tmp_path / "told").exists()
            assert not (tmp_path / "worker").exists()
            (tmp_path / "go").touch()
            pid_in(tmp_path / "worker")
            assert (tmp_path / "told").exists()
            boss.sees("all ready")

    def test_the_wait_is_bounded_and_the_message_says_for_whom(self, tmp_path: Path) -> None:
        code = """
children = [Child("slow", python("print('loading'); import time; time.sleep(300)"),
                  ready=re.compile("ready"), ready_s=0.3)]
"""
        with supervise(code, tmp_path) as boss:
            assert boss.ends() == 1
            assert (
                "FAILED slow was not ready within 0.3 s: giving up. Its last lines:\n    loading"
                in boss.output
            )

    def test_a_dispensable_child_that_is_never_ready_is_stopped(self, tmp_path: Path) -> None:
        code = f"""
children = [Child("fine", python({SLEEPER!r}, DIR / "fine")),
            Child("slow", python({SLEEPER!r}, DIR / "slow"),
                  ready=lambda: False, ready_s=0.5, essential=False)]
"""
        with supervise(code, tmp_path) as boss:
            slow = pid_in(tmp_path / "slow")
            boss.sees("giving up on it")
            boss.sees("all ready")
            wait_until(lambda: not lives(slow), "the slow one is stopped")
            assert boss.process.poll() is None

    def test_an_error_in_a_check_stops_everything(self, tmp_path: Path) -> None:
        code = f'children = [Child("a", python({SLEEPER!r}, DIR / "a"), ready=lambda: 1 / 0)]'
        with supervise(code, tmp_path) as boss:
            assert boss.ends() == 1
            assert "ZeroDivisionError" in boss.output


class TestOutput:
    def test_every_line_has_its_name_also_the_last_words(self, tmp_path: Path) -> None:
        code = """
SHORT = "import sys; print('out'); print('err', file=sys.stderr); print('end', end='')"
children = [Child("short", python(SHORT), restart=Restart(RestartWhen.FAILED)),
            Child("longer-name", python("print('x')"), restart=Restart(RestartWhen.FAILED))]
"""
        with supervise(code, tmp_path) as boss:
            assert boss.ends() == 0
            lines = boss.output.splitlines()
            assert {"short       | out", "short       | err", "short       | end", "longer-name | x"} <= set(
                lines
            )
            assert "\x1b" not in boss.output, "no colours off a terminal"

    def test_a_chatty_child_loses_no_line(self, tmp_path: Path) -> None:
        chatty = "for n in range(50000): print(n)"
        code = f'children = [Child("chatty", python({chatty!r}), restart=Restart(RestartWhen.FAILED))]'
        with supervise(code, tmp_path) as boss:
            assert boss.ends() == 0
            said = [line.split(" | ")[1] for line in boss.output.splitlines() if line.startswith("chatty")]
            assert said == [str(n) for n in range(50000)]

    def test_supervision_goes_on_when_nobody_reads_the_log(self, tmp_path: Path) -> None:
        code = f"""
import os
nowhere = os.open(os.devnull, os.O_RDONLY)
os.dup2(nowhere, 2)
children = [Child("talks", python("import time\\nwhile True: print('x'); time.sleep(0.01)")),
            Child("a", python({SLEEPER!r}, DIR / "a"))]
"""
        with supervise(code, tmp_path) as boss:
            boss.sees("all ready")
            assert lives(pid_in(tmp_path / "a"))
            boss.signal(signal.SIGTERM)
            assert boss.ends() == 0
