"""Every random state that a pipeline can draw from: its generators and torch's global ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from callsheet.workers.replay.refusals import NotReplayable


def generators_in(arguments: Mapping[str, Any]) -> list[torch.Generator]:
    """The generators among a call's arguments, alone or in lists, in their order."""
    found: list[torch.Generator] = []
    for value in arguments.values():
        items: Iterable[Any] = value if isinstance(value, list | tuple) else (value,)
        found += [item for item in items if isinstance(item, torch.Generator)]
    return found


def read_states(generators: list[torch.Generator]) -> dict[str, torch.Tensor]:
    """Name -> state, of every generator and of torch's global ones (of the current GPU)."""
    states = {f"generator.{at}": generator.get_state() for at, generator in enumerate(generators)}
    states["cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def write_states(states: Mapping[str, torch.Tensor], generators: list[torch.Generator]) -> None:
    """Put :func:`read_states` back. Raises NotReplayable when this run has other generators."""
    here = {f"generator.{at}" for at in range(len(generators))} | {"cpu"}
    if torch.cuda.is_available():
        here.add("cuda")
    if here != set(states):
        raise NotReplayable(
            f"the checkpoint has the random states {sorted(states)}, this run {sorted(here)}; "
            "the job starts again at step 0."
        )
    for at, generator in enumerate(generators):
        generator.set_state(states[f"generator.{at}"])
    torch.set_rng_state(states["cpu"])
    if "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"])
