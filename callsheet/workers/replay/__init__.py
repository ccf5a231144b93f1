"""Checkpoints by step replay, for any diffusers pipeline, bit for bit.

A snapshot holds what the scheduler's ``step`` returned in the last finished iteration of the denoising loop,
the schedulers' attributes, all random states and the encoded prompt. A resumed run goes through the
pipeline's own whole loop, but in the finished iterations the recorded results stand in for the scheduler's,
and empty ones for the denoiser's. After the last of them the attributes and the random states are put back,
and the run computes on. So nothing here knows a pipeline by name, and no pipeline has to help.

::

    replay = Replay(pipe, arguments, resume)        resume: a Snapshot, or None
    output = replay.run(step_ended, caught_up)      inside step_ended: replay.snapshot()
    blob = dump(snapshot, extra)                    parse(blob) gives the snapshot back
"""

from callsheet.workers.replay.belonging import Belonging, belonging, build_id, check_belongs
from callsheet.workers.replay.refusals import CheckpointRefused, NotReplayable, UnknownFormat
from callsheet.workers.replay.run import Replay
from callsheet.workers.replay.snapshot import Snapshot, dump, parse, read_extra

__all__ = [
    "Belonging",
    "CheckpointRefused",
    "NotReplayable",
    "Replay",
    "Snapshot",
    "UnknownFormat",
    "belonging",
    "build_id",
    "check_belongs",
    "dump",
    "parse",
    "read_extra",
]
