"""The size check finds what is too long and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_size import FILE_LINES, FOLDERS, FUNCTION_LINES, check, faults_of


def function(lines: int, kind: str = "def") -> str:
    return f"{kind} long():\n" + "    pass\n" * (lines - 1)


def test_a_file_one_line_below_the_bound_passes() -> None:
    assert list(faults_of("a.py", "x = 1\n" * (FILE_LINES - 1))) == []


def test_a_file_at_the_bound_is_named_with_its_length() -> None:
    assert list(faults_of("a.py", "x = 1\n" * FILE_LINES)) == [
        f"a.py:1: the file has {FILE_LINES} lines; fewer than {FILE_LINES} are allowed"
    ]


def test_a_function_one_line_below_the_bound_passes() -> None:
    assert list(faults_of("a.py", function(FUNCTION_LINES - 1))) == []


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_function_at_the_bound_is_named_with_its_place(kind: str) -> None:
    (fault,) = faults_of("a.py", "\n\n" + function(FUNCTION_LINES, kind))
    assert fault == f"a.py:3: long() has {FUNCTION_LINES} lines; fewer than {FUNCTION_LINES} are allowed"


def test_decorators_do_not_count() -> None:
    assert list(faults_of("a.py", "@staticmethod\n" * 5 + function(FUNCTION_LINES - 1))) == []


def test_a_method_is_looked_at_too() -> None:
    body = "    def long(self):\n" + "        pass\n" * (FUNCTION_LINES - 1)
    assert "a.py:2: long()" in next(faults_of("a.py", "class A:\n" + body))


def test_every_folder_is_looked_into(tmp_path: Path) -> None:
    for folder in FOLDERS:
        (tmp_path / folder / "deep").mkdir(parents=True)
        (tmp_path / folder / "deep" / "a.py").write_text("x = 1\n" * FILE_LINES)
    looked_at, faults = check(tmp_path)
    assert looked_at == len(faults) == len(FOLDERS)


def test_a_missing_folder_is_no_fault(tmp_path: Path) -> None:
    assert check(tmp_path) == (0, [])
