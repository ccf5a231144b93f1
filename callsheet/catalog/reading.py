"""Single arguments of a request, read strictly: nothing is guessed, every fault is kept."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

_FORBIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")  # control characters, lone surrogates
_LABEL = re.compile(r"[A-Za-z0-9._:@-]{1,128}")
_SHOWN = 60  # characters of a wrong value that an error repeats


def show(value: object) -> str:
    """A wrong value for an error message: short, printable, whatever it is."""
    if isinstance(value, int) and value.bit_length() > 128:
        return "a number of more than 38 digits"  # Python refuses to print huge ones
    if isinstance(value, dict | list | tuple):
        return f"a {type(value).__name__} of {len(value)}"  # its items may be anything, and deep
    text = ascii(value) if isinstance(value, str) and _FORBIDDEN.search(value) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


class Reader:
    """Reads arguments and collects ``faults``. A reading answers None for what is wrong or not given.

    None as a value counts as not given.
    """

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._arguments = {name: value for name, value in arguments.items() if value is not None}
        self.faults: list[str] = []

    def has(self, *names: str) -> bool:
        """Whether one of them was given."""
        return any(name in self._arguments for name in names)

    def fault(self, name: str, what: str) -> None:
        """Keep a fault of one argument."""
        shown = f"{name} = {show(self._arguments[name])}" if name in self._arguments else name
        self.faults.append(f"{shown} {what}")

    def refuse_unknown(self, known: Iterable[str], also_called: Mapping[str, str]) -> None:
        """Every argument that is none of ``known`` is a fault, with the name that was meant."""
        names = tuple(known)
        for name in self._arguments:
            if name not in names:
                text = str(name)[:64]
                near = (
                    [also_called[text]] if text in also_called else difflib.get_close_matches(text, names, 1)
                )
                hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(names)}"
                self.faults.append(f"{show(name)} is not an argument; {hint}")

    def whole(self, name: str, low: int, high: int, unit: str = "") -> int | None:
        """A whole number of ``low`` to ``high``; a bool or a string is none."""
        value = self._arguments.get(name)
        fine = type(value) is int and low <= value <= high
        if value is not None and not fine:
            what = "is out of range" if type(value) is int else "is not a whole number"
            self.fault(name, f"{what}; allowed: {low} to {high}{unit}")
        return value if fine else None

    def number(self, name: str, low: float, high: float, unit: str = "") -> float | None:
        """A finite number of ``low`` to ``high``; a bool or a string is none."""
        value = self._arguments.get(name)
        if value is None:
            return None
        if what := _number_fault(value, low, high):
            self.fault(name, f"{what}; allowed: {low:g} to {high:g}{unit}")
            return None
        return float(value)

    def string(self, name: str) -> str | None:
        """A string, as it is."""
        value = self._arguments.get(name)
        if value is not None and not isinstance(value, str):
            self.fault(name, "is not text")
        return value if isinstance(value, str) else None

    def prose(self, name: str, max_chars: int, *, may_be_blank: bool) -> str | None:
        """Text for the model: any script, new lines and tabs; kept byte for byte."""
        text = self.string(name)
        faults = [] if text is None else _prose_faults(text, max_chars, may_be_blank)
        for what in faults:
            self.fault(name, what)
        return None if faults else text

    def label(self, name: str) -> str | None:
        """A short name that can stand in a key."""
        text = self.string(name)
        if text is not None and _LABEL.fullmatch(text) is None:
            self.fault(name, "is not allowed: 1 to 128 of A-Z a-z 0-9 . _ : @ -")
            return None
        return text

    def choice(self, name: str, words: Iterable[str]) -> str | None:
        """One of a few words."""
        text, allowed = self.string(name), tuple(words)
        if text is not None and text not in allowed:
            self.fault(name, f"is not known; allowed: {', '.join(allowed)}")
            return None
        return text


def _number_fault(value: object, low: float, high: float) -> str:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return "is not a number"
    if isinstance(value, float) and not math.isfinite(value):
        return "is not finite"
    return "" if low <= value <= high else "is out of range"


def _prose_faults(text: str, max_chars: int, may_be_blank: bool) -> list[str]:
    faults = []
    if not (may_be_blank or text.strip()):
        faults.append(f"is blank; allowed: 1 to {max_chars} characters")
    if len(text) > max_chars:
        faults.append(f"is too long; allowed: up to {max_chars} characters, this has {len(text)}")
    if bad := _FORBIDDEN.search(text):
        where = f"holds U+{ord(bad[0]):04X} at position {bad.start()}"
        faults.append(f"{where}; allowed: no control characters but new line and tab")
    return faults
