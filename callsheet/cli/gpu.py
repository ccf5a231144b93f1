"""``callsheet gpu``: the GPUs, and what operators say about them. Orders are kept over restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from callsheet.cli.door import client
from callsheet.cli.group import Group
from callsheet.cli.options import Span, common, signed
from callsheet.cli.output import emit, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callsheet.client import Client

_names = click.argument("names", metavar="NAME...", nargs=-1, required=True)
_reason = click.option("--reason", default="", help="Needed: what others read who miss this GPU.")
_force = click.option("--force", is_flag=True, help="Also for a whole name whose worker is not alive.")


@click.group(cls=Group)
@common
def gpu() -> None:
    """See the GPUs, take them out of service and put them back."""


@gpu.command("list")
@common
def list_() -> None:
    """List every GPU that is alive or has an order: its state, job, models and order."""
    _show(client())


@gpu.command()
@_names
@_reason
@_force
@signed
@common
def cordon(names: tuple[str, ...], reason: str, force: bool, who: str) -> None:
    """Let GPUs take nothing new; the job that one has goes on. NAME may be the part before the @."""
    door = client()
    found = _find(door, names, force=force)
    for name in found:
        door.cordon(name, why=reason, who=who)
    _show(door, found)


@gpu.command()
@_names
@common
def uncordon(names: tuple[str, ...]) -> None:
    """Put GPUs back into service: the order of cordon or drain is lifted."""
    door = client()
    found = _find(door, names)
    for name in found:
        if not door.uncordon(name):
            say(f"{name} had no order")
    _show(door, found)


@gpu.command()
@_names
@_reason
@click.option("--preempt", is_flag=True, help="Hand its job back with a checkpoint at the next step.")
@click.option("--deadline", type=Span(), help="Hand its job back after so long (15m), unless it ended.")
@click.option("--wait", is_flag=True, help="Until no job is left on them.")
@click.option("--timeout", type=Span(), help="Longest wait (90s, 10m); the order stands, exit code 4.")
@_force
@signed
@common
def drain(
    names: tuple[str, ...],
    reason: str,
    preempt: bool,
    deadline: float | None,
    wait: bool,
    timeout: float | None,
    force: bool,
    who: str,
) -> None:
    """Empty GPUs: they take nothing new, and their jobs end, or go on elsewhere from a checkpoint.

    Without --preempt and --deadline a job may end by itself. Said again, the newest order counts.
    """
    if preempt and deadline is not None:
        raise click.UsageError("--preempt means at once: leave out --deadline, or --preempt")
    door = client()
    found = _find(door, names, force=force)
    for name in found:
        door.drain(name, why=reason, who=who, within_s=0.0 if preempt else deadline)
    if wait or timeout is not None:
        door.wait_idle(found, timeout=timeout)
    _show(door, found)


def _find(door: Client, names: Sequence[str], *, force: bool = False) -> list[str]:
    """Full names, each once: all are known, or nothing is done. Raises GpuNotFound, RequestError."""
    return list(dict.fromkeys(door.find_gpu(name, force=force) for name in names))


def _show(door: Client, only: Sequence[str] | None = None) -> None:
    from callsheet.cli.gpu_view import gpu_document, gpu_list, see

    seen = see(door.gpus(), door.gpu_orders(), door.running(), only)
    now = door.now()
    emit({"gpus": [gpu_document(one, now=now) for one in seen]}, gpu_list(seen, now=now))
