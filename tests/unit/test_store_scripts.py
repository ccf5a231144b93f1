"""The Lua that both stores' rules are put in front of."""

from __future__ import annotations

import re

import pytest

from callsheet.records.states import TERMINAL, TRANSITIONS
from callsheet.store.keys import PATTERNS
from callsheet.store.scripts import header, sources


def test_the_transition_table_is_the_one_of_the_records() -> None:
    table = re.search(r"local TRANSITIONS = \{ (.*) \}", header())
    assert table
    rows = re.findall(r'(\w+) = "(.*?)"', table[1])
    found = {state: set(after.split()) for state, after in rows}
    assert found == {state.value: {s.value for s in after} for state, after in TRANSITIONS.items()}
    for state in TERMINAL:
        assert re.search(rf"local TERMINAL = .*\b{state} = true", header())


def test_no_state_is_part_of_the_name_of_another() -> None:
    """The prelude looks for a state in a string of states."""
    assert not [(a, b) for a in TRANSITIONS for b in TRANSITIONS if a != b and a in b]


def test_keys_are_built_from_the_patterns() -> None:
    for name, pattern in PATTERNS.items():
        assert f'{name} = "{pattern.replace("{}", "%s")}"' in header()


@pytest.mark.parametrize(("name", "text"), sources().items())
def test_each_script_opens_with_its_keys_and_uses_known_ones(name: str, text: str) -> None:
    own = text.rpartition("job.token == token\nend\n")[2].lstrip()
    assert own.startswith("-- "), name
    assert "args:" in own or "Answers" in own
    assert set(re.findall(r"\bkey\.(\w+)\(", text)) <= set(PATTERNS)
    assert "callsheet:" not in own, "the prefix is an argument"
