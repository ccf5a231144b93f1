"""The key layout is written once, and its table tells the truth."""

from __future__ import annotations

import inspect
import re

import pytest

from callsheet.records.states import State
from callsheet.store import keys
from callsheet.store.keys import PATTERNS, Keys, tag

ARGUMENTS = {"tenant": "acme", "key": "k", "state": State.FAILED}


def example(name: str) -> str:
    function = getattr(Keys("p:"), name)
    return str(
        function(*(ARGUMENTS.get(argument, "x") for argument in inspect.signature(function).parameters))
    )


@pytest.mark.parametrize("name", PATTERNS)
def test_each_pattern_has_a_function(name: str) -> None:
    expected = "p:" + re.escape(PATTERNS[name]).replace(r"\{\}", r"[\w.]+")
    assert re.fullmatch(expected, example(name))


def test_each_function_has_a_pattern() -> None:
    functions = {name for name, _ in inspect.getmembers(Keys, inspect.isfunction) if not name.startswith("_")}
    assert functions == set(PATTERNS)


def test_the_table_lists_every_key_once() -> None:
    rows = re.findall(r"^``(.+?)`` ", keys.__doc__ or "", re.MULTILINE)
    assert sorted(re.sub(r"\{\w+\}", "{}", row) for row in rows) == sorted(PATTERNS.values())


def test_no_two_keys_are_the_same() -> None:
    found = [example(name) for name in PATTERNS]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("tenant", ["a:b", "a b", "ä/ö", "%3A", "*"])
def test_a_tenant_is_one_part_of_a_key(tenant: str) -> None:
    assert re.fullmatch(r"[\w.%-]+", tag(tenant))
    assert Keys().idem(tenant, "k") != Keys().idem("a", "b:k")
