"""A chord's body that could not be published is fired later.

Celery takes the fault for the chord's end: it stores a ChordError under the body's id and forgets the
members, so that nobody can fire it any more. A broker that is away for a moment is no such end.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import Any

from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

AWAY = (OperationalError, RedisError, OSError)  # the broker, or our store, does not answer
PUBLISHING = "Callback error"  # how Celery's error begins when the body was being published
FREE_S = 1  # the right to fire is given back by letting it run out

_faults: ContextVar[list[BaseException] | None] = ContextVar("callsheet_chord_faults", default=None)


class Unfired(Exception):
    """All members are counted, the body is not published, and nobody holds the right to: count again."""


class FiresLater:
    """Mixed into a result backend's class that counts chords."""

    def on_chord_part_return(self, *args: Any, **kwargs: Any) -> Any:
        """Celery's hook at a member's end. Raises Unfired."""
        faults: list[BaseException] = []
        token = _faults.set(faults)
        try:
            answer = super().on_chord_part_return(*args, **kwargs)  # type: ignore[misc]
        finally:
            _faults.reset(token)
        if faults:
            raise Unfired(f"the chord's body could not be published: {faults[0]}") from faults[0]
        return answer

    def chord_error_from_stack(self, callback: Any, exc: BaseException | None = None) -> Any:
        """Celery's hook while it handles the fault that ends a chord: an outage does not."""
        faults, fault = _faults.get(), sys.exc_info()[1]
        if faults is None or not isinstance(fault, AWAY) or not str(exc).startswith(PUBLISHING):
            return super().chord_error_from_stack(callback, exc)  # type: ignore[misc]
        faults.append(fault)
        return None

    @property
    def _chord_cleanup_script(self) -> Any:
        """Celery's script that forgets the members; after an outage only the right to fire is given back."""
        cleanup = super()._chord_cleanup_script  # type: ignore[misc]
        if not _faults.get():
            return cleanup

        def let_go(*, keys: list[str], args: list[Any], client: Any) -> int:
            claim, size, token = keys[0], keys[3], args[0]
            extend: Any = self._chord_claim_extend_script  # type: ignore[attr-defined]
            extend(keys=[claim, size], args=[token, FREE_S], client=client)
            return 1

        return let_go


def firing(kind: type) -> type:
    """A result backend's class that fires later."""
    return type(kind.__name__, (FiresLater, kind), {})
