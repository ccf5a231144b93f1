"""The plain parts of supervision: restart rules, lines, the name column, what a set of children may be."""

from __future__ import annotations

import io
import signal
import threading

import pytest

from callsheet.processes import Child, Printer, Restart, RestartWhen, Supervisor
from callsheet.processes.keeper import _ending
from callsheet.processes.output import LONGEST_LINE, LineBuffer, Tail, wants_colour


def child(name: str, **more: object) -> Child:
    return Child(name, ("true",), **more)  # type: ignore[arg-type]


class TestRestart:
    def test_waits_double_up_to_the_longest_and_then_it_gives_up(self) -> None:
        rule = Restart(first_s=1, factor=2, most_s=5, give_up_after=5)
        assert [rule.delay_s(n, 1) for n in range(6)] == [1, 1, 2, 4, 5, None]

    def test_who_is_killed_is_not_to_blame(self) -> None:
        rule = Restart(first_s=1, factor=2, give_up_after=1, give_up_after_kills=3)
        assert [rule.delay_s(n, 1) for n in range(2)] == [1, None]
        assert [rule.delay_s(n, -9) for n in range(4)] == [1, 1, 2, None]

    @pytest.mark.parametrize(
        ("when", "after_success", "after_failure"),
        [
            (RestartWhen.ALWAYS, True, True),
            (RestartWhen.FAILED, False, True),
            (RestartWhen.NEVER, False, False),
        ],
    )
    def test_which_endings_call_for_another_start(
        self, when: RestartWhen, after_success: bool, after_failure: bool
    ) -> None:
        rule = Restart(when)
        assert rule.wanted(0) is after_success
        assert rule.wanted(1) is after_failure
        assert rule.wanted(-9) is after_failure

    def test_endings_in_words(self) -> None:
        assert _ending(3) == "ended with code 3"
        assert _ending(-signal.SIGSEGV) == "was killed by SIGSEGV"
        assert _ending(-40) == "was killed by signal 40"


class TestLineBuffer:
    def test_cuts_lines_wherever_the_chunks_end(self) -> None:
        lines = LineBuffer()
        assert lines.feed(b"on") == []
        assert lines.feed(b"e\ntwo\nth") == ["one", "two"]
        assert lines.feed("r\u00fc".encode()[:2]) == []
        assert lines.feed("r\u00fc".encode()[2:] + b"\r\n") == ["thr\u00fc"]
        assert lines.flush() == []

    def test_the_rest_comes_at_the_end(self) -> None:
        lines = LineBuffer()
        assert lines.feed(b"no newline") == []
        assert lines.flush() == ["no newline"]
        assert lines.flush() == []

    def test_what_is_not_utf8_is_shown_anyway(self) -> None:
        assert LineBuffer().feed(b"\xff\n") == ["\ufffd"]

    def test_an_endless_line_does_not_fill_the_memory(self) -> None:
        lines = LineBuffer()
        pieces = [piece for _ in range(3) for piece in lines.feed(b"x" * LONGEST_LINE)]
        assert [len(piece) for piece in pieces] == [LONGEST_LINE] * 2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class TestPrinter:
    def test_names_stand_in_a_column(self) -> None:
        out = io.StringIO()
        printer = Printer(["a", "longer"], stream=out)
        printer.line("a", "one")
        printer.say("longer", "two")
        assert out.getvalue() == "a      | one\nlonger | two\n"

    def test_each_name_has_its_colour_on_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("NO_COLOR", raising=False)
        out = Terminal()
        printer = Printer(["a", "b"], stream=out)
        printer.line("a", "x")
        printer.line("b", "y")
        assert out.getvalue() == "\x1b[36ma | \x1b[0mx\n\x1b[33mb | \x1b[0my\n"

    def test_no_color_is_honoured(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NO_COLOR", "1")
        assert not wants_colour(Terminal())

    def test_a_nested_supervisors_names_are_taken_over(self) -> None:
        out = io.StringIO()
        printer = Printer(["workers"], stream=out)
        printer.line("workers", "h100-0  | step 3 | of 8", nested=True)
        printer.line("workers", "no column", nested=True)
        assert out.getvalue() == "h100-0  | step 3 | of 8\nworkers | no column\n"

    def test_quiet_leaves_out_the_children_only(self) -> None:
        out = io.StringIO()
        printer = Printer(["a"], stream=out, quiet=True)
        printer.line("a", "chatter")
        printer.say("a", "ready")
        assert out.getvalue() == "a | ready\n"

    def test_a_closed_stream_stops_nobody(self) -> None:
        out = io.StringIO()
        printer = Printer(["a"], stream=out, colour=False)
        out.close()
        printer.say("a", "unheard")

    def test_the_tail_keeps_the_last_lines(self) -> None:
        tail = Tail(2)
        for line in ("one", "two", " ", "three"):
            tail.add(line)
        assert str(tail) == "    two\n    three"


class TestChildren:
    def test_names_are_unique(self) -> None:
        with pytest.raises(ValueError, match="unique"):
            Supervisor([child("a"), child("a")], name="boss")

    def test_after_names_earlier_children(self) -> None:
        with pytest.raises(ValueError, match="earlier"):
            Supervisor([child("a", after=("b",)), child("b")], name="boss")

    def test_nobody_waits_for_a_child_that_may_give_up(self) -> None:
        with pytest.raises(ValueError, match="essential"):
            Supervisor([child("a", essential=False), child("b", after=("a",))], name="boss")

    def test_runs_in_the_main_thread_only(self) -> None:
        errors: list[BaseException] = []

        def run() -> None:
            try:
                Supervisor([], name="boss").run()
            except RuntimeError as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert "main thread" in str(errors[0])
