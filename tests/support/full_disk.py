"""A disk that looks full: writes past a size fail, for everybody and everywhere, root and tmpfs included."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def full_disk(limit: int) -> Iterator[None]:
    """Within the block no file of this process grows past ``limit`` bytes (EFBIG; a full disk says ENOSPC).

    Python ignores SIGXFSZ from its start, so the write fails and the process lives.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
