"""Repeating what cannot be done now, since store or storage do not answer."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from typing import TypeVar

from callsheet.errors import StorageError, Unreachable

log = logging.getLogger(__name__)
T = TypeVar("T")

AWAY_S = 900.0  # how long a finished film waits for a store that is away
PAUSE_S = 0.5  # between two tries


def insist(verb: Callable[[str], T]) -> T:
    """Repeat one verb, under one op, until the store answers: what was computed is not thrown away.

    Raises Unreachable after AWAY_S.
    """
    op, ends = uuid.uuid4().hex, time.monotonic() + AWAY_S
    while True:
        try:
            return verb(op)
        except Unreachable as fault:
            if time.monotonic() > ends:
                raise
            log.warning("%s; tried again", fault)
            time.sleep(PAUSE_S)


def persist(act: Callable[[], T], patience_s: float, *, give_up: tuple[type[StorageError], ...] = ()) -> T:
    """Do something with object storage, again and again for ``patience_s``. Safe for what may be done twice.

    Raises its StorageError then; one of the ``give_up`` classes, which no waiting mends, at once.
    """
    ends = time.monotonic() + patience_s
    while True:
        try:
            return act()
        except StorageError as fault:
            if isinstance(fault, give_up) or time.monotonic() + PAUSE_S > ends:
                raise
            log.warning("%s; tried again", fault)
            time.sleep(PAUSE_S)
