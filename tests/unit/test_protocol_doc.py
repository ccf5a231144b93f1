"""``docs/protocol.md`` names tests that exist, for each of the fifteen rules; and who may publish."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "protocol.md").read_text()
ROWS = re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \|$", TEXT, re.M)


def named(cell: str) -> list[tuple[str, str]]:
    """(file, test) of each test in a cell; a test without a file is of the file before it."""
    found, file = [], ""
    for word in re.findall(r"`([^`]+)`", cell):
        path, _, name = word.rpartition("::")
        file = path or (word if word.endswith(".py") else file)
        found.append((file, "" if word.endswith(".py") else name))
    return found


def test_every_rule_has_a_row() -> None:
    assert [int(number) for number, _, _ in ROWS] == list(range(1, 16))


@pytest.mark.parametrize(("number", "cell"), [(number, cell) for number, _, cell in ROWS])
def test_the_tests_of_a_rule_exist(number: str, cell: str) -> None:
    tests = named(cell)
    assert tests
    for file, name in tests:
        path = ROOT / "tests" / file
        assert path.is_file(), f"rule {number}: tests/{file}"
        assert not name or f"def {name}(" in path.read_text(), f"rule {number}: {file}::{name}"


def callers() -> set[tuple[str, str]]:
    """(file, call) of everything that puts a message of our task on the wire."""
    found = set()
    for path in (ROOT / "callsheet").rglob("*.py"):
        name = str(path.relative_to(ROOT))
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call):
                continue
            if ast.unparse(call.func) in ("attempt.apply_async", "attempt.delay", "attempt.apply"):
                found.add((name, "attempt"))
            elif ast.unparse(call.func) == "send":
                found.add((name, "send"))
    return found


def test_tickets_are_published_in_one_place_and_passed_on_in_another() -> None:
    publish, ticket = "callsheet/tasks/publish.py", "callsheet/tasks/ticket.py"
    assert callers() == {(ticket, "attempt"), (ticket, "send"), (publish, "send")}
