"""What operators say about GPUs: take nothing new, give up your job. Kept in the store until it is lifted."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

from callsheet.errors import GpuNotFound, RequestError, WaitTimeout
from callsheet.records.gpus import GpuOrder
from callsheet.records.requests import MAX_AHEAD_S
from callsheet.store.protocol import Store

CORDONED, DRAINING = "cordoned", "draining"
POLL_S = 0.3
MAX_WHY = 500  # characters


def find_gpu(store: Store, name: str, *, force: bool = False) -> str:
    """The full name of a GPU that is alive or has an order: ``h100-0@host``, or its part before the ``@``.

    ``force``: a full name may be unknown. Raises GpuNotFound, RequestError (several are called so).
    """
    known = sorted({gpu.name for gpu in store.gpus()} | set(store.gpu_orders()))
    if name in known or (force and "@" in name.strip("@")):
        return name
    meant = [one for one in known if one.partition("@")[0] == name]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise RequestError(
            f"{len(meant)} GPUs are called {name[:64]!r}: {', '.join(meant)}; nothing was changed. "
            "Write the whole name of the one you mean."
        )
    raise GpuNotFound(_unknown(name, known, force=force))


def _unknown(name: str, known: Sequence[str], *, force: bool) -> str:
    there = f"known are {', '.join(known)}" if known else "none is alive, and none has an order"
    hint = "--force takes a whole name only, as h100-0@host" if force else "--force with the whole name"
    return (
        f"no GPU {name[:64]!r}: {there}. Nothing was changed. `callsheet gpu list` shows them; "
        f"for one whose worker is gone: {hint}."
    )


def cordon(store: Store, name: str, *, why: str, who: str) -> None:
    """The GPU takes nothing new; the job that it has goes on. Raises RequestError without a reason."""
    _order(store, name, GpuOrder(CORDONED, who, checked_why(why)))


def drain(store: Store, name: str, *, why: str, who: str, within_s: float | None) -> None:
    """The GPU takes nothing new and hands its job back, with a checkpoint, after ``within_s`` seconds.

    0 = at its next step; None = the job may end by itself. Raises RequestError without a reason, and for a
    time that is more than 366 days ahead.
    """
    said, give_up_at = checked_why(why), 0.0
    if within_s is not None:
        if not within_s <= MAX_AHEAD_S:  # what is not a number is never less
            raise RequestError(
                f"a drain within {within_s:g} s; allowed: up to 366 days, or without a deadline. Nothing was "
                "changed."
            )
        give_up_at = store.now() + max(within_s, 0.0)
    _order(store, name, GpuOrder(DRAINING, who, said, give_up_at=give_up_at))


def uncordon(store: Store, name: str) -> bool:
    """Lift the order. False: there was none."""
    found = store.gpu_order(name) is not None
    _order(store, name, None)
    return found


def checked_why(why: str) -> str:
    """The reason, without blanks around it. Raises RequestError when there is none, or a novel."""
    said = why.strip()
    if not said or len(said) > MAX_WHY:
        raise RequestError(
            f"a reason of 1 to {MAX_WHY} characters is needed, for whoever finds this GPU out of service; "
            "nothing was changed. Say it with --reason 'fan replaced'."
        )
    return said


def _order(store: Store, name: str, order: GpuOrder | None) -> None:
    if order is not None and not order.who.strip():
        raise RequestError("an order needs the name of who gives it; nothing was changed. Say it with --as.")
    store.order_gpu(name, order, op=uuid.uuid4().hex)


def busy(store: Store, names: Sequence[str]) -> dict[str, str]:
    """Those of the GPUs that have a job, with its id: by their heartbeat or by the job's record."""
    at_work = {gpu.name: gpu.job_id for gpu in store.gpus() if gpu.job_id}
    at_work |= {job.worker: job.id for job in store.running()}
    return {name: at_work[name] for name in names if name in at_work}


def wait_idle(store: Store, names: Sequence[str], timeout: float | None) -> None:
    """Block until none of the GPUs has a job. Raises WaitTimeout."""
    ends = None if timeout is None else time.monotonic() + timeout
    while True:
        at_work = busy(store, names)
        if not at_work:
            return
        left = POLL_S if ends is None else min(POLL_S, ends - time.monotonic())
        if left <= 0:
            still = ", ".join(f"{name} with job {job_id}" for name, job_id in at_work.items())
            raise WaitTimeout(
                f"still busy after {timeout:g} s: {still}. The order stands; `callsheet gpu list` shows when "
                "it is drained."
            )
        time.sleep(left)
