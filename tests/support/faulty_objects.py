"""Object storage in memory that fails as real ones do: refuses, is slow, is full, damages what it holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from callsheet.artifacts.objects import Entry, Objects
from callsheet.artifacts.places import Place, check_key
from callsheet.artifacts.stores import S3Access
from callsheet.errors import ObjectNotFound, StorageError

VERBS = frozenset({"write", "read", "look at", "delete", "list"})


class FaultyObjects(Objects):
    """Works until it is told not to; ``held`` is what it holds, ``asked`` what was asked of it."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__(Place("memory", "faulty"), S3Access())
        self.clock = clock  # of ``modified``
        self.held: dict[str, tuple[bytes, float]] = {}
        self.asked: list[tuple[str, str]] = []  # (verb, key)
        self.refuses: Collection[str] = ()  # verbs that fail, on every key
        self.stubborn: Collection[str] = ()  # keys that every verb fails on
        self.delay_s = 0.0  # for each verb
        self.capacity: int | None = None  # bytes; None = no bound

    def corrupt(self, key: str) -> None:
        """Turn one bit of an object."""
        data, modified = self.held[key]
        self.held[key] = (bytes([data[0] ^ 1]) + data[1:], modified)

    def truncate(self, key: str) -> None:
        """Keep the first half of an object."""
        data, modified = self.held[key]
        self.held[key] = (data[: len(data) // 2], modified)

    def at(self, url: str) -> Objects:
        return self

    def put(self, key: str, data: bytes | Path) -> None:
        content = data.read_bytes() if isinstance(data, Path) else bytes(data)
        self._ask("write", key)
        others = sum(len(held) for name, (held, _) in self.held.items() if name != key)
        if self.capacity is not None and others + len(content) > self.capacity:
            raise StorageError(f"cannot write {self.url(key)}: no space left. Free space there.")
        self.held[key] = (content, self.clock())

    def get(self, key: str) -> bytes:
        self._ask("read", key)
        if key not in self.held:
            raise ObjectNotFound(f"no object at {self.url(key)}")
        return self.held[key][0]

    def get_to(self, key: str, path: Path) -> Path:
        path.write_bytes(self.get(key))
        return path

    def exists(self, key: str) -> bool:
        self._ask("look at", key)
        return key in self.held

    def delete(self, key: str) -> None:
        self._ask("delete", key)
        self.held.pop(key, None)

    def entries(self, prefix: str = "") -> Iterator[Entry]:
        self._ask("list", prefix)
        for key, (data, modified) in sorted(self.held.items()):
            if not prefix or key.startswith(f"{prefix}/"):
                yield Entry(key, len(data), modified)

    def _ask(self, verb: str, key: str) -> None:
        check_key(key or "all")
        self.asked.append((verb, key))
        if self.delay_s:
            time.sleep(self.delay_s)
        if verb in self.refuses or key in self.stubborn:
            raise StorageError(f"cannot {verb} {self.url(key)}: refused, as the test wants")
