"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from callsheet.artifacts.reasons import next_step, reason
from callsheet.errors import StorageError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Hand out a ``.part`` file beside ``path``; when the block ends well it becomes ``path``, else it goes.

    Its name is unique, so that two writers of one path don't write into each other; the last one wins.
    An OSError, also one of the block's, becomes a StorageError with path and next step.
    """
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield part
        os.replace(part, path)  # noqa: PTH105 - Path.replace would hide that this is the atomic step
    except StorageError:
        raise
    except OSError as error:
        step = next_step(error, elsewhere="choose another path")
        message = f"cannot write {path}: {reason(error)}. Nothing half-written is left. {step}"
        raise StorageError(message) from error
    finally:
        _discard(part)


def _discard(part: Path) -> None:
    try:
        part.unlink(missing_ok=True)
    except NotADirectoryError:  # the path lies below a regular file: there never was a part
        return
