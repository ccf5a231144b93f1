"""Groups and chords that our task leads and a host application's tasks are members of.

Celery lets the first member's app lead: it lends its producer to every member and counts the chord in its
result backend. A host's task would so land on *our* broker, where nobody runs it, and count in the *host's*
backend, where nobody waits. Hence: the producer that we lend counts as none, so that a host's task takes its
own; and a chord with a host's task in its header is counted in the host's backend as a whole. The chords
that our backend counts carry a mark, since a member may be submitted later from anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from celery import Celery
from celery.result import ResultBase, ResultSet

MARK, OURS = "counted_by", "callsheet"
REMEMBERED = 1000  # newest groups whose counting app is remembered while they are being published

_elsewhere: dict[str, Celery] = {}  # group id -> the host that counts it


class Lent:
    """A producer of ours in the hands of a canvas: works as such, and is false, so that others use theirs."""

    def __init__(self, producer: Any) -> None:
        self._producer = producer

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)


def counted_by_us(chord: Mapping[str, Any]) -> bool:
    """Whether our backend counts the chord that ends in this body."""
    return chord.get(MARK) == OURS


def unmarked(chord: Mapping[str, Any]) -> dict[str, Any]:
    """The body to be fired: Celery takes a key that it does not know for an option."""
    return {key: value for key, value in chord.items() if key != MARK}


def counting_host(group_id: str | None) -> Celery | None:
    """The host whose backend counts a group that our task leads; None when ours does."""
    return _elsewhere.get(group_id or "")


class CountsChords:
    """Mixed into our result backend's class: decides who counts, before the first member is published."""

    app: Celery

    def apply_chord(self, header_result_args: Any, body: dict[str, Any], **kwargs: Any) -> None:
        """Celery's hook at the start of a chord; knows the results of all members."""
        group_id, results = header_result_args[0], header_result_args[1]
        host = foreign_app(results, self.app)
        if host is None:
            body[MARK] = OURS
            super().apply_chord(header_result_args, body, **kwargs)  # type: ignore[misc]
        else:
            _remember(group_id, host)
            host.backend.apply_chord(header_result_args, body, **kwargs)

    def set_chord_size(self, group_id: str, chord_size: int) -> None:
        """Celery's hook before the last member is published."""
        host = counting_host(group_id)
        if host is None:
            super().set_chord_size(group_id, chord_size)  # type: ignore[misc]
        else:
            host.backend.set_chord_size(group_id, chord_size)


def counting(kind: type) -> type:
    """A result backend's class that knows about hosts."""
    return type(f"Callsheet{kind.__name__}", (CountsChords, kind), {})


def foreign_app(results: Iterable[ResultBase], ours: Celery) -> Celery | None:
    """The app of the first task that is not ours, at the end of a member or on the way to it."""
    for result in results:
        node = result
        while node is not None:
            app = foreign_app(node.results, ours) if isinstance(node, ResultSet) else node.app
            if app is not None and app is not ours:
                return app
            node = node.parent
    return None


def _remember(group_id: str, host: Celery) -> None:
    _elsewhere[group_id] = host
    while len(_elsewhere) > REMEMBERED:
        del _elsewhere[next(iter(_elsewhere))]
