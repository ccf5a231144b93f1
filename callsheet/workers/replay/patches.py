"""Put something in the place of an attribute or a class for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_NOTHING = object()


@contextmanager
def patched(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Set an attribute of one instance, and afterwards have it as it was, also when it was not there.

    It goes past ``__setattr__``, which modules use for their own ends.
    """
    attributes = vars(owner)
    before = attributes.get(name, _NOTHING)
    attributes[name] = value
    try:
        yield
    finally:
        if before is _NOTHING:
            attributes.pop(name, None)
        else:
            attributes[name] = before


@contextmanager
def of_class(instance: Any, cls: type) -> Iterator[None]:
    """Make an instance one of ``cls``, a subclass of its own class. A deep copy made meanwhile stays one."""
    before = type(instance)
    instance.__class__ = cls
    try:
        yield
    finally:
        instance.__class__ = before
