"""Keep diffusers and transformers from talking over a worker's own log."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import diffusers
import transformers


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and no advice from either library; errors still come as exceptions."""
    for library in (diffusers, transformers):
        library.utils.logging.set_verbosity_error()
        library.utils.logging.disable_progress_bar()
    with warnings.catch_warnings():
        # diffusers 0.42 prefers ``dtype``; older ones, which we support, know only ``torch_dtype``
        warnings.filterwarnings("ignore", message=".*torch_dtype.*", category=FutureWarning)
        yield
