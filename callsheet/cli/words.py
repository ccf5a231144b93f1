"""Numbers, times and foreign text as people read them. Pure."""

from __future__ import annotations

import unicodedata
from datetime import datetime, tzinfo

NOTHING = "-"

#: Characters that would move the cursor, hide text or turn its direction. The joiner of emoji may stay.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_KEPT = frozenset({"\u200d"})


def printable(text: str, limit: int = 0) -> str:
    """Text of unknown origin on one line: no control or direction characters; cut to ``limit`` characters."""
    line = " ".join(text.split())
    seen = "".join("\ufffd" if _is_unseen(char) else char for char in line)
    return f"{seen[: limit - 1]}…" if limit and len(seen) > limit else seen


def _is_unseen(char: str) -> bool:
    return char not in _KEPT and unicodedata.category(char) in _UNSEEN


def span(seconds: float) -> str:
    """A length of time in its two largest units: ``0.4 s``, ``3 min 05 s``, ``2 h 10 min``, ``3 d 4 h``."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def moment(at: float, zone: tzinfo | None = None) -> str:
    """A moment (seconds since the epoch) in local time, or in ``zone``; ``-`` for 0."""
    if not at:
        return NOTHING
    return datetime.fromtimestamp(at, zone).astimezone(zone).isoformat(" ", timespec="seconds")


def first_sentence(text: str) -> str:
    """What happened, without what it means and what to do next."""
    return text.split(". ")[0].rstrip(".")


def count(number: int, one: str, many: str = "") -> str:
    """``1 job``, ``2 jobs``."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"
