"""The Lua that both stores' rules are put in front of."""

from __future__ import annotations

import re

import pytest

from callsheet.records.states import TERMINAL, TRANSITIONS
from callsheet.store.keys import PATTERNS
from callsheet.store.scripts import header, sources


def test_the_transition_table_is_the_one_of_the_records() -> None:
    rows = re.findall(r"^  (\w+) = \{ (.*?) \},$", header(), re.MULTILINE)
    found = {state: set(re.findall(r"(\w+) = true", after)) for state, after in rows}
    assert found == {state.value: {s.value for s in after} for state, after in TRANSITIONS.items()}
    for state in TERMINAL:
        assert re.search(rf"local TERMINAL = .*\b{state} = true", header())


def test_keys_are_built_from_the_patterns() -> None:
    assert 'job = function(a) return ARGV[1] .. "job:" .. a end' in header()
    assert 'events = function(a) return ARGV[1] .. "job:" .. a .. ":events" end' in header()
    assert 'idem = function(a, b) return ARGV[1] .. "idem:" .. a .. ":" .. b end' in header()
    assert 'held = function() return ARGV[1] .. "held" end' in header()


@pytest.mark.parametrize(("name", "text"), sources().items())
def test_each_script_opens_with_its_keys_and_uses_known_ones(name: str, text: str) -> None:
    own = text.rpartition("job.token == token\nend\n")[2].lstrip()
    assert own.startswith("-- "), name
    assert "args:" in own or "Answers" in own
    assert set(re.findall(r"\bkey\.(\w+)\(", text)) <= set(PATTERNS)
    assert "callsheet:" not in own, "the prefix is an argument"
