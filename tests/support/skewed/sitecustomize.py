"""A process with this folder on its PYTHONPATH lives ``SKEW_S`` seconds ahead of the others.

Python imports it before anything else, so that also those who write ``from time import time`` get the skewed
clock. Intervals (``time.monotonic``) are what they are.
"""

from __future__ import annotations

import copyreg
import datetime
import os
import time
from typing import Any

SKEW_S = float(os.environ.get("SKEW_S", "0"))

_true_time, _True = time.time, datetime.datetime


class _AnyDatetime(type):
    """A true datetime counts as one of the skewed class, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _True)


class _Skewed(datetime.datetime, metaclass=_AnyDatetime):
    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return _True.now(tz) + datetime.timedelta(seconds=SKEW_S)

    @classmethod
    def utcnow(cls) -> Any:
        return _True.now(datetime.UTC).replace(tzinfo=None) + datetime.timedelta(seconds=SKEW_S)


def _moment(text: str) -> datetime.datetime:
    """What a pickled moment becomes."""
    return _True.fromisoformat(text)


if SKEW_S:
    copyreg.pickle(_True, lambda moment: (_moment, (moment.isoformat(),)))
    time.time = lambda: _true_time() + SKEW_S
    datetime.datetime = _Skewed  # type: ignore[misc]
