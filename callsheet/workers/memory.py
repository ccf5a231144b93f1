"""GPU memory: giving it back, and saying how much there is."""

from __future__ import annotations

import gc
import traceback

import torch

GIB = 1024**3


def free_memory() -> None:
    """Give back what nobody refers to any more. Call it outside ``except``: a traceback holds tensors."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def is_shortage(error: BaseException) -> bool:
    """Whether an exception says that GPU memory, or on the CPU main memory, ran out."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)


def traceback_text(error: BaseException) -> str:
    """A traceback as text for the log: a log record that carries the exception keeps its tensors alive."""
    return "".join(traceback.format_exception(error))


def memory_report() -> str:
    """Need against have, for a message about a shortage: ``"the most in use was 70.1 GiB of 79.2 GiB"``."""
    if not torch.cuda.is_available():
        return "on the CPU, no GPU is used"
    peak = torch.cuda.max_memory_allocated() / GIB
    total = torch.cuda.mem_get_info()[1] / GIB
    return f"the most in use was {peak:.1f} GiB of {total:.1f} GiB"
